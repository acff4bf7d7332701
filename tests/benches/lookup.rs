//! What a lookup of one key costs among few and among many objects. It is the table of a watch
//! cache that is measured: the lock and the check of its age, which do not depend on the number
//! of objects, are left out.

use std::hint::black_box;

use opensdn_policy_host::Index;
use opensdn_testing::Failed;
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_webhook::lookup::store::{IndexSchema, Store};
use serde_json::json;

/// Lookups that are timed together: one is as short as the clock is coarse.
const BATCH: u32 = 1_000;
const BATCHES: usize = 400;

fn main() -> Result<(), Failed> {
    let index = Index {
        name: "by-ip".to_owned(),
        group: "opensdn.io".to_owned(),
        kind: "LinkLocalService".to_owned(),
        key: "/spec/ip".to_owned(),
        reads: vec!["/spec/port".to_owned(), "/spec/name".to_owned()],
    };
    let shape = IndexSchema::new([&index]);
    let number = shape.number(&index).ok_or("the index")?;
    let mut rows = Vec::new();
    for objects in [10, 1_000, 100_000_u32] {
        let table = table(&shape, objects);
        let find = |key: &str| {
            let found = table.find(number, black_box(key), usize::MAX);
            let found: Vec<_> =
                found.iter().filter_map(|entry| shape.found(number, entry).ok()).collect();
            black_box(found).len()
        };
        let hot = ip(objects / 2);
        assert_eq!((find(&hot), find("10.0.0.1")), (1, 0), "one has the key, none the other");
        // The keys are made beforehand, strewn over all objects.
        let strewn: Vec<String> =
            (0..BATCH).map(|key| ip(key.wrapping_mul(2_654_435_761) % objects)).collect();
        let same = Sample::of(BATCHES, || {
            for _ in 0..BATCH {
                find(&hot);
            }
        });
        let any = Sample::of(BATCHES, || {
            for key in &strewn {
                find(key);
            }
        });
        let none = Sample::of(BATCHES, || {
            for _ in 0..BATCH {
                find("10.0.0.1");
            }
        });
        let row = |what: &str, sample: &Sample| {
            let nanoseconds = sample.percentile(0.5) * 1_000.0 / f64::from(BATCH);
            Row::new(format!("{what} among {objects} objects"), nanoseconds, "ns")
        };
        rows.push(row("find a key, the same each time,", &same).aim("1.2 × that among 10"));
        rows.push(row("find a key, 1,000 keys in turn,", &any));
        rows.push(row("find a key that none has,", &none).aim("1.2 × that among 10"));
    }
    report("lookup", &rows)?;
    Ok(())
}

fn table(shape: &IndexSchema, objects: u32) -> Store {
    let mut table = Store::new(shape);
    for number in 0..objects {
        let name = format!("service-{number}");
        table.put(
            shape,
            &json!({
                "metadata": {"name": name, "namespace": "tf", "uid": format!("uid-{number}")},
                "spec": {"ip": ip(number), "port": 9100, "name": name},
            }),
        );
    }
    table
}

/// Another address for each number below 2^24.
fn ip(number: u32) -> String {
    let [_, high, middle, low] = number.to_be_bytes();
    format!("169.{high}.{middle}.{low}")
}
