//! Records of several clusters on one object.

use serde_json::json;

use super::*;

fn cluster(id: &str) -> ClusterId {
    ClusterId::new(id).unwrap()
}

fn record() -> Record {
    let key = Key::new([10, 10, 10, 1].into(), 8082);
    let target = Target::new([[192, 168, 1, 100].into(), [192, 168, 1, 101].into()], 8082);
    let held = |how| Held { name: "a".to_owned(), target: target.clone(), how };
    Record {
        cluster: None,
        rows: BTreeMap::from([
            (key, held(How::Written)),
            (Key::new([10, 10, 10, 2].into(), 9091), held(How::Adopted)),
        ]),
        snat: BTreeMap::from([("0a1b".to_owned(), Snat::Off), ("2c3d".to_owned(), Snat::On)]),
        pools: Pools::Ours,
    }
}

fn annotations(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let record = record();
    let stored = annotations(&[("kubectl-opensdn/mine", &record.json()), ("other", "x")]);
    let records = Records::read(&stored, &cluster("mine")).unwrap();
    assert_eq!((records.ours, records.others), (record, 0));
    assert!(Records::read(&BTreeMap::new(), &cluster("mine")).unwrap().ours.is_empty());
}

#[test]
fn rows_and_networks_of_others_are_known_whatever_the_version_of_their_record() {
    let newer = json!({
        "version": 7, "more": 1, "snat": {"4e5f": {"before": false}},
        "rows": [{"key": "10.10.10.9:80", "leads": "elsewhere"}],
    });
    let (newer, known) = (newer.to_string(), record().json());
    let stored =
        annotations(&[("kubectl-opensdn/newer", &newer), ("kubectl-opensdn/known", &known)]);
    let records = Records::read(&stored, &cluster("mine")).unwrap();
    let keys: Vec<String> = records.other_keys.iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["10.10.10.1:8082", "10.10.10.2:9091", "10.10.10.9:80"]);
    assert_eq!(records.other_networks.into_keys().collect::<Vec<_>>(), ["0a1b", "2c3d", "4e5f"]);
    assert_eq!((records.ours.is_empty(), records.others), (true, 2));
}

#[test]
fn a_record_without_keys_is_an_error_that_names_it() {
    for text in ["", "x", "[]", "{\"version\": 1}", "{\"rows\": [{\"key\": \"10.0.0.1\"}]}"] {
        let stored = annotations(&[("kubectl-opensdn/broken", text)]);
        let error = Records::read(&stored, &cluster("mine")).unwrap_err().to_string();
        assert!(error.contains("kubectl-opensdn/broken") && error.contains("remove"), "{error}");
    }
    let newer = annotations(&[("kubectl-opensdn/mine", "{\"version\": 2, \"rows\": []}")]);
    let error = Records::read(&newer, &cluster("mine")).unwrap_err().to_string();
    assert!(error.contains("update this program"), "{error}");
}

#[test]
fn an_id_is_what_can_be_in_a_name() {
    for wrong in ["", "a/b", "a b", "a:b", "ü"] {
        assert!(ClusterId::new(wrong).is_err(), "{wrong}");
    }
    assert_eq!(cluster("3f2a-1.b_c").annotation(), "kubectl-opensdn/3f2a-1.b_c");
}

#[test]
fn a_record_keeps_the_names_of_targets() {
    let key = Key::new([10, 10, 10, 9].into(), 80);
    for hosts in ["nova.example", "10.0.0.9"] {
        let target = Target::on_host(hosts, 8775);
        let held = Held { name: "nova".to_owned(), target, how: How::Written };
        let record = Record { rows: BTreeMap::from([(key, held)]), ..Record::default() };
        assert_eq!(Record::parse(&record.json()).unwrap(), record);
    }
}
