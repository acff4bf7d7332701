//! What `opensdn-manifests` reads from YAML, and what kubectl reads from it: the same values, or
//! both refuse. Where we refuse what kubectl silently takes, the case says so.

use futures::{StreamExt, TryStreamExt, stream};
use opensdn_manifests::{Severity, Source, read};
use opensdn_testing::sandbox::Cluster;
use opensdn_testing::shared::Shared;
use opensdn_testing::{Failed, Outcome};
use serde_json::Value;

/// What precedes each text: an object that takes anything in its settings.
const OBJECT: &str =
    "apiVersion: opensdn.io/v1alpha1\nkind: AdmissionPolicy\nmetadata: {name: a}\n";

/// Values of one key.
const SCALARS: [&str; 84] = [
    "",
    "~",
    "null",
    "Null",
    "nULL",
    "yes",
    "Yes",
    "yES",
    "no",
    "on",
    "Off",
    "y",
    "N",
    "true",
    "TRUE",
    "tRUE",
    "0",
    "-0",
    "+1",
    "1_000",
    "0644",
    "0o644",
    "0O17",
    "08",
    "019",
    "0x1F",
    "-0x1f",
    "0X1f",
    "0b101",
    "-0b11",
    "0b2",
    "1.0",
    "1.5",
    "-1.25e1",
    "1e3",
    "1e30",
    "1E5",
    ".5",
    "5.",
    "-.5",
    ".",
    "-",
    "+",
    "1e",
    "1e999",
    "0x",
    "0x1p4",
    "1__0",
    "_1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "12345678901234567890123",
    "2001-12-14",
    "2001-12-14t21:59:43.10-05:00",
    "2001-12-14 21:59:43",
    "2001-13-45",
    "12:30:45",
    "190:20:30",
    "1.2.3",
    "10.0.0.1",
    "10.0.0.0/8",
    "1 2",
    "'1'",
    "\"yes\"",
    "\"\\u00e4\\x41\\n\"",
    "'it''s'",
    "!!str 12",
    "!!int \"12\"",
    "!!float 3",
    "!!bool \"yes\"",
    "!!null \"\"",
    "!!int x",
    "!!binary aGVsbG8=",
    "!own x",
    "! 12",
    ".nan",
    ".inf",
    "-.INF",
    "=",
    "a: b",
    "- a",
];

/// Texts below `settings:`, each indented by four.
const BLOCKS: [&str; 24] = [
    "    yes: a\n    1: b\n    1.5: c\n    0x10: d\n    off: e\n    \"no\": f\n",
    "    ~: a\n",
    "    ? [a]\n    : b\n",
    "    a: &x {b: 1}\n    c: *x\n    d: [*x, *x]\n",
    "    a: &x {b: 1, c: 2}\n    d:\n      <<: *x\n      b: 3\n",
    "    a: &x {b: 1}\n    d:\n      b: 3\n      <<: *x\n",
    "    a: &x {b: 1}\n    e: &y {b: 2, f: 3}\n    d:\n      <<: [*x, *y]\n",
    "    a:\n      <<: {b: 1}\n      <<: {c: 1}\n",
    "    a: &x [1]\n    d: {<<: *x}\n",
    "    a: {<<: 3}\n",
    "    a: {\"<<\": 3}\n",
    "    a: *none\n",
    "    a: |\n      b\n       c\n\n    d: >-\n      e\n      f\n\n      g\n    h: |+\n      i\n\n",
    "    a: 'b\n      c'\n    d: \"e \\\n      f\"\n    g: h\n      i\n",
    "    a:\tb\n",
    "\ta: b\n",
    "    a:\n    \tb: c\n",
    "    a: {b:\t1,\n     \tc: 2}\n",
    "    a: # comment\n      b: 'x # y'\n      c: x#y\n",
    "    a: [1, 2\n",
    "    a: 'b\n",
    "    a: b: c\n",
    "    a: @b\n",
    "    - a\n    -\n    - - b\n      - c\n",
];

/// What kubectl takes silently, and is nearly always a mistake, or what YAML forbids: reported as
/// an error here.
const STRICTER: [&str; 3] =
    ["    a: {b: 1,\n\tc: 2}\n", "    a: 1\n    a: 2\n", "    1: a\n    \"1\": b\n"];

#[tokio::test]
async fn values_are_those_that_kubectl_reads() -> Outcome {
    let scalars =
        SCALARS.iter().map(|scalar| format!("{OBJECT}spec:\n  settings: {{}}\n  x: {scalar}\n"));
    let blocks = BLOCKS.iter().map(|block| format!("{OBJECT}spec:\n  settings:\n{block}"));
    let cluster = Shared::with_crds().await?;
    let compared = scalars.chain(blocks).map(|text| async move {
        let theirs = kubectl_reads(cluster, &text).await?;
        let ours = we_read(&text);
        Ok::<_, Failed>(
            (theirs != ours).then(|| format!("{text}theirs: {theirs:?}\nours: {ours:?}")),
        )
    });
    let differences: Vec<Option<String>> = stream::iter(compared).buffered(4).try_collect().await?;
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

#[tokio::test]
async fn what_kubectl_swallows_is_refused() -> Outcome {
    let cluster = Shared::with_crds().await?;
    for block in STRICTER {
        let text = format!("{OBJECT}spec:\n  settings:\n{block}");
        assert!(kubectl_reads(cluster, &text).await?.is_some(), "{text}");
        assert_eq!(we_read(&text), None, "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn streams_are_taken_apart_as_by_kubectl() -> Outcome {
    let cluster = Shared::with_crds().await?;
    let json = "{\"apiVersion\":\"opensdn.io/v1alpha1\",\"kind\":\"AdmissionPolicy\",\"metadata\":{\"name\":\"b\"}}";
    let list = OBJECT.replace('\n', "\n  ").replace("apiV", "- apiV");
    let streams = [
        format!("{OBJECT}---\n{OBJECT}"),
        format!("---\n---\n# nothing\n---\n{OBJECT}--- # text\n{OBJECT}---\n"),
        format!("\u{feff}{OBJECT}"),
        OBJECT.replace('\n', "\r\n"),
        format!("{json}{json}\n{json}"),
        format!("{json}\n---\n{OBJECT}"),
        format!("apiVersion: v1\nkind: List\nitems:\n{}", list.trim_end()),
        format!("{OBJECT}--- {{}}\n"),
        format!("%YAML 1.2\n---\n{OBJECT}"),
    ];
    for text in streams {
        let theirs = kubectl_reads(cluster, &text).await?;
        assert_eq!(we_read(&text), theirs, "{text:?}");
    }
    Ok(())
}

/// The objects that kubectl would send; none where it refuses.
async fn kubectl_reads(cluster: &Cluster, text: &str) -> Result<Option<Vec<Value>>, Failed> {
    let arguments = ["create", "--dry-run=client", "--validate=false", "-o=json", "-f", "-"];
    let output = cluster.kubectl_with_input(&arguments, text).await?;
    if !output.status.success() {
        return Ok(None);
    }
    let objects = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let mut read = Vec::new();
    for object in objects {
        let mut object = object?;
        as_kubernetes_counts(&mut object);
        read.push(object);
    }
    Ok(Some(read))
}

/// Kubernetes has no unsigned numbers: what does not fit 64 bits with a sign is a float, which Go
/// writes without a point.
fn as_kubernetes_counts(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() => *value = Value::from(number.as_f64()),
        Value::Array(items) => items.iter_mut().for_each(as_kubernetes_counts),
        Value::Object(fields) => fields.values_mut().for_each(as_kubernetes_counts),
        _ => {}
    }
}

/// The objects that we read; none where something is wrong.
fn we_read(text: &str) -> Option<Vec<Value>> {
    let parsed = read(&Source::new("stdin", text));
    let refused = parsed.problems.iter().any(|problem| problem.severity == Severity::Error);
    let values = parsed.documents.into_iter().map(|document| document.value);
    (!refused).then(|| values.collect())
}
