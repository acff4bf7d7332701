//! The page of metrics (`docs/src/reference/metrics.md`) and what both programs show are the same:
//! every name with its type, and the labels of every series that there is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use opensdn_testing::Outcome;
use opensdn_testing::admin_port;
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::product::Installation;
use opensdn_testing::sandbox::Sandbox;
use serde_json::json;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference/metrics.md");
const PREFIX: &str = "opensdn_webhook_";
/// With fewer than that the page, or how it is read, is broken.
const LEAST: usize = 25;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Metric {
    kind: String,
    labels: BTreeSet<String>,
}

/// The name of a metric, and the labels that one of its series has.
type Series = (String, BTreeSet<String>);

fn in_backticks(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// What the page says, and rows of it that say not all.
fn described(page: &str) -> (BTreeMap<String, Metric>, Vec<String>) {
    let (mut metrics, mut wrong) = (BTreeMap::new(), Vec::new());
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, kind, labels, says, _, _] = cells.as_slice() else {
            wrong.push(row.to_owned());
            continue;
        };
        let labels = in_backticks(labels).collect();
        if says.is_empty() || in_backticks(name).count() != 1 {
            wrong.push(row.to_owned());
        }
        let metric = Metric { kind: (*kind).to_owned(), labels };
        metrics.extend(in_backticks(name).map(|name| (name, metric.clone())));
    }
    (metrics, wrong)
}

/// What a program shows: types by name, and the labels of the series of each name.
fn shown(text: &str) -> (BTreeMap<String, String>, Vec<Series>) {
    let (mut kinds, mut series) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap_or((kind, ""));
            let name = name.strip_prefix(PREFIX).unwrap_or(name);
            kinds.insert(name.to_owned(), kind.to_owned());
        } else if !line.starts_with('#') {
            let (name, labels) = line.split_once('{').unwrap_or((line, ""));
            let name = name.split(' ').next().unwrap_or(name);
            let name = name.strip_prefix(PREFIX).unwrap_or(name);
            let name = ["_total", "_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .unwrap_or(name);
            let labels = labels.split_once('}').map_or("", |(labels, _)| labels);
            let labels = labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0));
            // That of a histogram's buckets.
            let labels = labels.filter(|label| *label != "le").map(str::to_owned).collect();
            series.push((name.to_owned(), labels));
        }
    }
    (kinds, series)
}

/// What is not as the page says.
fn differences(page: &BTreeMap<String, Metric>, text: &str) -> Vec<String> {
    let (kinds, series) = shown(text);
    let mut wrong = Vec::new();
    for name in kinds.keys().chain(page.keys()).collect::<BTreeSet<_>>() {
        let (described, shown) = (page.get(name).map(|metric| &metric.kind), kinds.get(name));
        if described != shown {
            wrong.push(format!("{name}: on the page {described:?}, shown {shown:?}"));
        }
    }
    for (name, labels) in series {
        let described = page.get(&name).map(|metric| &metric.labels);
        if described != Some(&labels) {
            wrong.push(format!("{name}: labels on the page {described:?}, shown {labels:?}"));
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_metrics_has_what_both_programs_show_and_one_of_each_leads() -> Outcome {
    let (page, wrong) = described(&fs::read_to_string(PAGE)?);
    assert!(wrong.is_empty(), "not name, type, labels, meaning and remedy:\n{}", wrong.join("\n"));
    assert!(page.len() >= LEAST, "{} metrics on the page", page.len());

    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let product = Installation::built()?.apart(1).install(&sandbox).await?;
    // What has labels is seen when it is counted.
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    for (name, ok) in [("first", true), ("second", false)] {
        let service = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
            "metadata": {"name": name, "namespace": "tf"}, "spec": {"ip": "169.254.7.1",
                "port": 80, "fabric": {"addresses": ["10.1.1.1"], "port": 8080}}});
        assert_eq!(send(&sandbox, &["create"], &service).await?.ok, ok, "{name}");
    }
    let writer = product.writer_admin(0).ok_or("nobody writes")?;
    let replica = product.backends().first().ok_or("no replica")?.admin;
    for admin in [replica, writer] {
        let leads = async || {
            let text = admin_port::get(admin, "/metrics").await.unwrap_or_default();
            text.lines().any(|line| line == format!("{PREFIX}leader 1"))
        };
        eventually("it leads", leads).await;
        let wrong = differences(&page, &admin_port::get(admin, "/metrics").await?);
        assert!(wrong.is_empty(), "put it right in {PAGE}:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

#[test]
fn a_metric_that_is_not_as_the_page_says_is_found() {
    let text = "\
# TYPE opensdn_webhook_there gauge
opensdn_webhook_there 1
# TYPE opensdn_webhook_counted counter
opensdn_webhook_counted_total{policy=\"a\",mode=\"b\"} 1
# TYPE opensdn_webhook_new gauge
# EOF
";
    let page = "\
| `there` | counter | | says | |
| `counted` | counter | `policy` | says | |
| `gone` | gauge | | says | |
";
    let (page, wrong) = described(page);
    assert!(wrong.is_empty(), "{wrong:?}");
    let found = differences(&page, text);
    for name in ["there:", "counted: labels", "gone:", "new:"] {
        assert!(found.iter().any(|line| line.starts_with(name)), "{name} {found:?}");
    }
    assert_eq!(found.len(), 4, "{found:?}");
}
