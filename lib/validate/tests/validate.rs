//! Documents through the whole of a validation, with the policies that a cluster gets.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use opensdn_policy_host::{Cache, Engine, Metering};
use opensdn_validate::report::{Finding, Layout, Severity, ValidationReport, write_human};
use opensdn_validate::{Error, Loader, Operator, Task, Validated, validate};

/// What runs policies, as in the plugin.
struct World {
    tokio: tokio::runtime::Runtime,
    engine: Engine,
    cache: Cache,
}

/// One for all tests. What it compiles is there for the plugin's transcripts too.
static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache/opensdn");
    Mutex::new(World {
        tokio: tokio::runtime::Runtime::new().unwrap(),
        engine: Engine::start_metered(4, Metering::Off).unwrap(),
        cache: Cache::below(folder.as_ref()).unwrap(),
    })
});

fn try_run(task: &Task) -> Result<Validated, Error> {
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let loader = Loader { engine: &world.engine, cache: Some(&world.cache), compiler: None };
    world.tokio.block_on(Box::pin(validate(loader, task, None)))
}

fn run(task: &Task) -> Validated {
    try_run(task).unwrap()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(root.path().join(name), text).unwrap();
    }
    root
}

fn task(root: &Path) -> Task {
    Task { names: vec![root.to_owned()], ..Task::default() }
}

fn report(files: &[(&str, &str)]) -> ValidationReport {
    let root = folder(files);
    run(&task(root.path())).report
}

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|one| one.code.as_str()).collect()
}

fn link_local(name: &str, ip: &str, more: &str) -> String {
    format!(
        "apiVersion: opensdn.io/v1alpha1\nkind: LinkLocalService\nmetadata:\n  name: {name}\n  \
         namespace: tf\n{more}spec:\n  ip: {ip}\n  port: 9100\n  fabric:\n    addresses: \
         [10.0.0.5]\n    port: 9100\n"
    )
}

#[test]
fn claims_of_two_files_are_found_with_both_places() {
    let (one, two) = (link_local("a", "169.254.0.9", ""), link_local("b", "169.254.0.9", ""));
    let report = report(&[("a.yaml", &one), ("b.yaml", &two)]);
    let found = report.findings.iter().find(|one| one.message.contains("already taken")).unwrap();
    assert_eq!(
        found.message,
        "169.254.0.9:9100 (link-local-address) is already taken by LinkLocalService tf/a (/spec/ip)"
    );
    assert!(found.place.file.ends_with("b.yaml"), "{:?}", found.place);
    assert_eq!((found.place.line, found.place.column), (Some(7), Some(7)));
    assert!(found.related[0].place.file.ends_with("a.yaml"));
}

#[test]
fn the_same_object_twice_is_one_finding_and_no_conflict_of_claims() {
    let one = link_local("a", "169.254.0.9", "");
    let report = report(&[("a.yaml", &one), ("b.yaml", &one)]);
    assert_eq!(codes(&report.findings), ["defined-twice"]);
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    let text = format!("a: [\n---\n{}", link_local("a", "127.0.0.1", ""));
    let report = report(&[("a.yaml", &text)]);
    let codes = codes(&report.findings);
    assert!(codes.contains(&"yaml-syntax") && codes.contains(&"OSDN1604"), "{codes:?}");
}

#[test]
fn suppressions_need_a_reason_and_are_listed() {
    let annotation = "  annotations: {opensdn.io/ignore: \"OSDN1604 a lab\"}\n";
    let granted = report(&[("a.yaml", &link_local("a", "127.0.0.1", annotation))]);
    assert_eq!(codes(&granted.findings), Vec::<&str>::new());
    assert_eq!(codes(&granted.suppressed), ["OSDN1604"]);
    assert_eq!(granted.suppressed[0].suppression.as_ref().unwrap().reason, "a lab");

    let comment = "127.0.0.1 # opensdn-ignore: OSDN1604 a lab";
    let granted = report(&[("a.yaml", &link_local("a", comment, ""))]);
    assert_eq!(codes(&granted.suppressed), ["OSDN1604"]);

    let silent = "127.0.0.1 # opensdn-ignore: OSDN1604";
    let refused = report(&[("a.yaml", &link_local("a", silent, ""))]);
    assert_eq!(codes(&refused.findings), ["OSDN1604", "suppression-without-reason"]);

    let unused = "169.254.0.9 # opensdn-ignore: OSDN1604 a lab";
    let unused = report(&[("a.yaml", &link_local("a", unused, ""))]);
    assert_eq!(codes(&unused.findings), ["suppression-unused"]);
}

#[test]
fn settings_and_policies_replace_what_is_there() {
    let root = folder(&[("a.yaml", &link_local("a", "169.254.20.1", ""))]);
    let aside = folder(&[
        ("settings.yaml", "duplicate-link-local: {fabricSubnets: [169.254.20.0/24]}\n"),
        ("unknown.yaml", "no-such-policy: {}\n"),
        (
            "policy.yaml",
            "apiVersion: opensdn.io/v1alpha1\nkind: AdmissionPolicy\nmetadata: {name: \
             duplicate-link-local}\nspec:\n  module: {builtIn: duplicate-link-local}\n  mode: \
             warn\n  settings: {fabricSubnets: [169.254.20.0/24]}\n",
        ),
    ]);
    assert_eq!(codes(&run(&task(root.path())).report.findings), Vec::<&str>::new());
    let settings = Some(aside.path().join("settings.yaml"));
    let with = Task { settings, ..task(root.path()) };
    let report = run(&with).report;
    assert_eq!(codes(&report.findings), ["OSDN1604"]);
    assert_eq!(report.summary.errors, 1);
    let policies = vec![aside.path().join("policy.yaml")];
    let report = run(&Task { policies, ..task(root.path()) }).report;
    assert_eq!((report.summary.errors, report.summary.warnings), (0, 1));
    let settings = Some(aside.path().join("unknown.yaml"));
    let error = try_run(&Task { settings, ..task(root.path()) }).unwrap_err();
    assert_eq!(error.code, "unknown-policy");
}

#[test]
fn a_baseline_hides_what_it_has_and_nothing_else() {
    let root = folder(&[("a.yaml", &link_local("a", "127.0.0.1", ""))]);
    let first = run(&task(root.path())).report;
    let mut document = serde_json::to_value(&first).unwrap();
    document["kind"] = "ValidationReport".into();
    let aside = folder(&[("baseline.json", &document.to_string())]);
    fs::write(root.path().join("b.yaml"), link_local("b", "127.0.0.2", "")).unwrap();
    let baseline: Option<PathBuf> = Some(aside.path().join("baseline.json"));
    let report = run(&Task { baseline, ..task(root.path()) }).report;
    assert_eq!(codes(&report.suppressed), ["OSDN1604"]);
    assert_eq!(codes(&report.findings), ["OSDN1604"]);
    assert!(report.findings[0].place.file.ends_with("b.yaml"));
}

#[test]
fn every_sample_passes_and_every_refused_sample_is_refused() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    // Not together: some are the same cluster in two ways.
    for entry in fs::read_dir(deploy.join("samples")).unwrap() {
        let sample = entry.unwrap().path();
        let others = ["control.yaml", "vrouter-profile.yaml"];
        let others = others.map(|name| deploy.join("samples").join(name));
        let names = std::iter::once(sample.clone()).chain(others).collect();
        let report = run(&Task { names, ..Task::default() }).report;
        let errors: Vec<String> = report
            .findings
            .iter()
            .filter(|one| one.severity == Severity::Error)
            .filter(|one| one.place.file == sample.display().to_string())
            .map(|one| format!("{} {} {}", one.place.text(), one.code, one.message))
            .collect();
        assert_eq!(errors, Vec::<String>::new());
    }
    for entry in fs::read_dir(deploy.join("samples-refused")).unwrap() {
        let path = entry.unwrap().path();
        let names = vec![deploy.join("samples/link-local-service.yaml"), path.clone()];
        let report = run(&Task { names, ..Task::default() }).report;
        assert!(report.summary.errors > 0, "{}", path.display());
    }
}

#[test]
fn other_kinds_are_counted_and_refused_only_when_strict() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n";
    let root = folder(&[("a.yaml", deployment)]);
    let lenient = run(&task(root.path())).report;
    assert_eq!((lenient.findings.len(), lenient.summary.ignored), (0, 1));
    let strict = run(&Task { strict: true, ..task(root.path()) }).report;
    assert_eq!(codes(&strict.findings), ["unknown-kind"]);
}

/// The first example of the book is what a terminal shows.
#[test]
fn the_book_shows_what_is_written() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/validate.md");
    let book = fs::read_to_string(book).unwrap();
    let shown = book.split("```\n").find(|block| block.starts_with("error[")).unwrap();
    let control = "# The control nodes of rack a.\napiVersion: tf.tungsten.io/v1alpha1\nkind: Control\nmetadata:\n  \
        name: control\n  namespace: tf\nspec:\n  serviceConfiguration:\n    subcluster: rack-a\n    \
        asnNumber: 4294967296\n";
    let root = folder(&[("control.yaml", control)]);
    let report = run(&task(root.path())).report;
    let mut text = Vec::new();
    let layout = Layout { width: 80, unicode: true };
    write_human(&report, layout, &mut anstream::StripStream::new(&mut text)).unwrap();
    let text = String::from_utf8(text).unwrap();
    let text = text.replace(&root.path().display().to_string(), "deploy");
    assert!(text.contains(shown.trim_end()), "{text}");
}

/// tf-operator's default manifest repeats each of its mistakes for many of thirteen components.
#[test]
fn upstreams_default_manifest_is_at_most_ten_findings_to_read() {
    let sample =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples/tf-operator-default.yaml");
    let report = run(&task(&sample)).report;
    let mut text = Vec::new();
    let layout = Layout { width: 80, unicode: false };
    write_human(&report, layout, &mut anstream::StripStream::new(&mut text)).unwrap();
    let text = String::from_utf8(text).unwrap();
    let levels = ["error[", "warning[", "info["];
    let is_finding = |line: &&str| levels.iter().any(|level| line.starts_with(level));
    let findings = text.lines().filter(is_finding).count();
    assert!((1..=10).contains(&findings), "{findings} findings:\n{text}");
    assert!(report.findings.len() > findings, "machines get every place");
}

const ZOOKEEPER: &str = "apiVersion: tf.tungsten.io/v1alpha1\nkind: Zookeeper\nmetadata: {name: zookeeper1, \
    namespace: tf}\nspec:\n  commonConfiguration:\n    nodeSelector: {rack: a}\n  \
    serviceConfiguration:\n    containers: [{name: zookeeper, image: \"r/z:1\"}]\n";

#[test]
fn that_something_is_not_there_is_told_only_of_kinds_of_which_something_is_known() {
    let unknown = report(&[("a.yaml", ZOOKEEPER)]);
    assert_eq!(codes(&unknown.findings), Vec::<&str>::new());
    assert!(unknown.not_checked.iter().any(|one| one.what.contains("Node")), "{unknown:?}");
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {rack: b}}\n";
    let known = report(&[("a.yaml", ZOOKEEPER), ("b.yaml", node)]);
    assert_eq!(codes(&known.findings), ["OSDN1202"]);
}

#[test]
fn a_service_that_may_be_an_object_of_its_own_is_missed_only_among_the_documents() {
    let manager = |services: &str| {
        format!(
            "apiVersion: tf.tungsten.io/v1alpha1\nkind: Manager\nmetadata: {{name: m, namespace: tf}}\nspec:\n  \
             services: {{{services}}}\n"
        )
    };
    let severities = |services: &str| -> Vec<Severity> {
        let report = report(&[("a.yaml", &manager(services))]);
        let missing = report.findings.iter().filter(|one| one.code == "OSDN1105");
        missing.map(|one| one.severity).collect()
    };
    let some = "config: {metadata: {name: config1}}, analytics: {metadata: {name: analytics1}}, \
        rabbitmq: {metadata: {name: rabbitmq1}}, redis: [{metadata: {name: redis1}}]";
    let database = "cassandras: [{metadata: {name: configdb1}}]";
    assert_eq!(severities(&format!("{some}, {database}")), [Severity::Warning]);
    // A database cannot be an object of its own.
    let zookeeper = "zookeeper: {metadata: {name: zookeeper1}}";
    assert_eq!(severities(&format!("{some}, {zookeeper}")), [Severity::Error]);
    let report = report(&[("a.yaml", &manager(&format!("{some}, {database}")))]);
    let missing = report.findings.iter().find(|one| one.code == "OSDN1105").unwrap();
    assert_eq!(missing.pointer.as_deref(), Some("/spec/services/zookeeper"));
    assert!(missing.message.contains("only the documents were looked at"), "{}", missing.message);
    assert!(report.not_checked.iter().any(|one| one.what.contains("Zookeeper")), "{report:?}");
}

/// The codes of these that the report has.
fn among(report: &ValidationReport, of_interest: &[&str]) -> Vec<String> {
    let codes = report.findings.iter().map(|one| one.code.as_str());
    codes.filter(|code| of_interest.contains(code)).map(str::to_owned).collect()
}

#[test]
fn what_a_sample_alone_names_is_not_looked_up_and_no_error() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples");
    for name in ["vrouter.yaml", "webui.yaml"] {
        let report = run(&task(&samples.join(name))).report;
        assert_eq!(report.summary.errors, 0, "{name}: {:?}", report.findings);
        let is_lookup = |what: &&str| what.starts_with("what policies look up");
        let what = report.not_checked.iter().map(|one| one.what.as_str()).find(is_lookup).unwrap();
        assert!(what.contains("Control"), "{name}: {what}");
    }
}

const VROUTER: &str = "apiVersion: tf.tungsten.io/v1alpha1\nkind: Vrouter\nmetadata: {name: v, namespace: tf}\n\
    spec:\n  serviceConfiguration: {controlInstance: c, subcluster: s, profiles: [p]}\n";
const CONTROL: &str =
    "apiVersion: tf.tungsten.io/v1alpha1\nkind: Control\nmetadata: {name: other, namespace: tf}\n";
const OF_REFERENCES: [&str; 3] = ["OSDN1801", "OSDN1613", "OSDN1821"];

#[test]
fn a_vrouter_is_judged_by_the_controls_that_are_known_and_by_what_it_leaves_unset() {
    let alone = report(&[("a.yaml", VROUTER)]);
    assert_eq!(among(&alone, &OF_REFERENCES), [""; 0]);
    let known = report(&[("a.yaml", VROUTER), ("b.yaml", CONTROL)]);
    assert_eq!(among(&known, &OF_REFERENCES), ["OSDN1801", "OSDN1613"]);
    let unset = report(&[("a.yaml", &VROUTER.replace("controlInstance: c, ", ""))]);
    assert_eq!(among(&unset, &OF_REFERENCES), ["OSDN1801"]);
}

#[test]
fn a_manager_is_judged_by_the_controls_that_it_lists() {
    let manager = "apiVersion: tf.tungsten.io/v1alpha1\nkind: Manager\nmetadata: {name: m, namespace: tf}\nspec:\n  \
        services:\n    vrouters:\n      - metadata: {name: v}\n        spec: {serviceConfiguration: \
        {controlInstance: c, subcluster: s, profiles: [p]}}\n";
    let alone = report(&[("a.yaml", manager)]);
    assert_eq!(among(&alone, &OF_REFERENCES), [""; 0], "its Controls may be objects of their own");
    let listed =
        manager.replace("vrouters:", "controls: [{metadata: {name: other}}]\n    vrouters:");
    let listed = report(&[("a.yaml", &listed)]);
    assert_eq!(among(&listed, &OF_REFERENCES), ["OSDN1801", "OSDN1613"]);
}

#[test]
fn what_tf_operator_cannot_do_is_found_where_it_runs_the_cluster() {
    let text = ZOOKEEPER.replace("containers:", "clientPort: 2183\n    containers:");
    let root = folder(&[("a.yaml", &text)]);
    let ours = run(&task(root.path())).report;
    assert_eq!(codes(&ours.findings), Vec::<&str>::new());
    let theirs = Task { operator: Operator::TfOperator, ..task(root.path()) };
    assert_eq!(codes(&run(&theirs).report.findings), ["OSDN1510"]);
}

#[test]
fn tf_operator_needs_the_key_of_which_it_makes_rabbitmqs_user() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: broker, namespace: tf}\nstringData: {user: a, \
                  password: b, vhost: c}\n---\n";
    let text = format!(
        "{secret}apiVersion: tf.tungsten.io/v1alpha1\nkind: Rabbitmq\nmetadata: {{name: r, namespace: tf}}\nspec: \
         {{serviceConfiguration: {{secret: broker}}}}\n"
    );
    let root = folder(&[("a.yaml", &text)]);
    assert_eq!(among(&run(&task(root.path())).report, &["OSDN1521"]), [""; 0]);
    let theirs = Task { operator: Operator::TfOperator, ..task(root.path()) };
    assert_eq!(among(&run(&theirs).report, &["OSDN1521"]), ["OSDN1521"]);
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/webhook/secret-keys.yaml");
    let with_the_file = Task { policies: vec![keys.into()], ..theirs };
    let found = run(&with_the_file).report;
    assert_eq!(among(&found, &["OSDN1521"]), [""; 0], "a file judges as it would in a cluster");
    let salted = text.replace("vhost: c", "vhost: c, salted_password: d");
    let root = folder(&[("a.yaml", &salted)]);
    let theirs = Task { operator: Operator::TfOperator, ..task(root.path()) };
    assert_eq!(among(&run(&theirs).report, &["OSDN1521"]), [""; 0]);
}

const STOCK: &str =
    include_str!("../../nested-workloads/tests/foreign/contrail-nested-kubernetes.yaml");

/// The lines of a code in a report.
fn lines(report: &ValidationReport, code: &str) -> Vec<usize> {
    let of_code = report.findings.iter().filter(|one| one.code == code);
    of_code.filter_map(|one| one.place.line).collect()
}

/// The line, from 1, with this text.
fn line_of(text: &str) -> usize {
    STOCK.lines().position(|line| line.trim() == text).unwrap() + 1
}

#[test]
fn upstreams_manifest_of_nested_mode_has_each_of_its_defects_at_its_line() {
    let report = report(&[("nested.yaml", STOCK)]);
    for code in 3041..=3053 {
        assert!(!lines(&report, &format!("OSDN{code}")).is_empty(), "OSDN{code}: {report:#?}");
    }
    let second =
        STOCK.lines().enumerate().filter(|(_, line)| *line == "spec:").nth(1).unwrap().0 + 1;
    assert_eq!(lines(&report, "OSDN3041"), [second]);
    assert_eq!(
        lines(&report, "OSDN3046"),
        [line_of("KEYSTONE_AUTH_ADMIN_PASSWORD: \"c0ntrail123\"")]
    );
    assert_eq!(lines(&report, "OSDN3042").len(), 1);
    let of_kind = |kind: &str| report.findings.iter().find(|one| one.code == kind).unwrap();
    assert_eq!(of_kind("OSDN3041").severity, Severity::Error);
    assert_eq!(of_kind("OSDN3043").severity, Severity::Warning);
    assert_eq!(of_kind("OSDN3047").object.as_ref().unwrap().kind, "ClusterRole");
    // Two ConfigMaps, two DaemonSets, role, binding and token; an account says nothing.
    assert_eq!((report.summary.objects, report.summary.ignored), (7, 1));
    let mut text = serde_json::to_vec(&report).unwrap();
    write_human(&report, Layout { width: 80, unicode: false }, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains("c0ntrail123"), "a password is in no report: {text}");
}

#[test]
fn a_manifest_of_nested_mode_may_be_in_several_files_and_a_defect_be_accepted() {
    let parts: Vec<&str> = STOCK.split("\n---\n").collect();
    let named: Vec<(String, String)> = parts
        .iter()
        .enumerate()
        .map(|(number, part)| (format!("{number}.yaml"), (*part).to_owned()))
        .collect();
    let files: Vec<(&str, &str)> =
        named.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let report = self::report(&files);
    for code in 3041..=3053 {
        assert!(!lines(&report, &format!("OSDN{code}")).is_empty(), "OSDN{code}");
    }
    let accepted = STOCK.replace("rules:\n", "# opensdn-ignore: OSDN3047 a lab\nrules:\n");
    let report = self::report(&[("nested.yaml", &accepted)]);
    assert_eq!(lines(&report, "OSDN3047"), [0; 0]);
    assert_eq!(codes(&report.suppressed), ["OSDN3047"]);
}

#[test]
fn what_is_not_of_nested_mode_is_ignored_as_before() {
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {password: x}\n---\n\
                 apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: calico-node}\nspec: {}\n";
    let report = report(&[("other.yaml", other)]);
    assert_eq!((codes(&report.findings), report.summary.ignored), (Vec::new(), 2));
}
