//! The table as a whole: what each component demands of its configuration, and that a plan has all
//! that the configuration says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::component::{Component, Endpoint, Format, Key, Presence};
use crate::components::{COMPONENTS, named};
use crate::configuration::Configuration;
use crate::plan::{Plan, Reply, Server};

/// Everything that a component demands, with values that make sense.
fn demanded(component: &Component) -> BTreeMap<(&'static str, &'static str), String> {
    let mut values = BTreeMap::new();
    let mut put = |key: Key, value: &str| {
        values.insert((key.section, key.name), value.to_owned());
    };
    for key in component.required {
        put(*key, if key.name.ends_with("_port") { "6443" } else { "x" });
    }
    for port in component.ports {
        if let Endpoint::Keys { port, otherwise: None, .. } = port.endpoint {
            put(port, "8080");
        }
    }
    for need in component.needs.iter().filter(|need| need.presence == Presence::Required) {
        put(need.servers, "10.0.0.1:9041,10.0.0.2:9041");
        for name in need.with {
            put(Key { section: need.servers.section, name }, "x");
        }
    }
    values
}

fn written(
    values: &BTreeMap<(&'static str, &'static str), String>,
) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.conf");
    let mut text = String::new();
    for ((section, name), value) in values {
        // The empty section is the first in order.
        if !section.is_empty() {
            writeln!(text, "[{section}]").unwrap();
        }
        writeln!(text, "{name}={value}").unwrap();
    }
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn plan(component: &'static Component, path: PathBuf) -> Result<Plan, String> {
    let configuration = Configuration::read(component.format, &[path]);
    let configuration = configuration.map_err(|error| crate::chain(&error))?;
    Plan::of(component, &configuration).map_err(|problem| problem.to_string())
}

fn with_sections() -> impl Iterator<Item = &'static Component> {
    let plain = [Format::Ini, Format::Environment];
    // The addresses and certificates of these have a test of their own.
    let special = ["stunnel", "kafka"];
    COMPONENTS.iter().filter(move |it| plain.contains(&it.format) && !special.contains(&it.name))
}

#[test]
fn each_component_takes_what_it_demands_and_names_whatever_of_it_is_missing() {
    for component in with_sections() {
        let values = demanded(component);
        let (_folder, path) = written(&values);
        let planned = plan(component, path).unwrap();
        assert_eq!(planned.listeners.len(), component.ports.len(), "{}", component.name);
        for missing in values.keys() {
            let mut values = values.clone();
            values.remove(missing);
            let (_folder, path) = written(&values);
            let said = plan(component, path).unwrap_err();
            let (section, name) = missing;
            let wanted =
                if section.is_empty() { (*name).into() } else { format!("[{section}] {name}: ") };
            assert!(said.contains(&wanted) && said.contains("there is no such"), "{said}");
        }
    }
}

#[test]
fn no_two_components_of_a_node_want_the_same_port_by_themselves() {
    let fixed =
        COMPONENTS.iter().flat_map(|component| component.ports).filter_map(|port| {
            match port.endpoint {
                Endpoint::Fixed(number) | Endpoint::Keys { otherwise: Some(number), .. } => {
                    Some(number)
                }
                Endpoint::Keys { .. } | Endpoint::Joined(_) | Endpoint::Worded(_) => None,
            }
        });
    let all: Vec<u16> = fixed.collect();
    let once: BTreeSet<u16> = all.iter().copied().collect();
    assert_eq!(all.len(), once.len(), "{all:?}");
    let names: BTreeSet<_> = COMPONENTS.iter().map(|component| component.name).collect();
    assert_eq!(names.len(), COMPONENTS.len());
}

#[test]
fn servers_have_the_port_that_is_theirs() {
    let component = named("kubemanager").unwrap();
    let mut values = demanded(component);
    let servers = |text: &str, port: &str, values: &mut BTreeMap<_, String>| {
        values.insert(("VNC", "rabbit_server"), text.to_owned());
        values.insert(("VNC", "rabbit_port"), port.to_owned());
        let (_folder, path) = written(values);
        plan(component, path).map(|mut plan| plan.connections.swap_remove(3).servers)
    };
    let server = |host: &str, port| Server { host: host.into(), port };
    let found = servers("a,b:1,[fd00::1],[fd00::1]:2", "5673", &mut values).unwrap();
    let wanted = [server("a", 5673), server("b", 1), server("fd00::1", 5673), server("fd00::1", 2)];
    assert_eq!(found, wanted);
    let said = servers("a:x", "5673", &mut values).unwrap_err();
    assert!(
        said.contains("[VNC] rabbit_server: \"a:x\" is no address with a port; write host:port")
    );
    let said = servers("a", "0", &mut values).unwrap_err();
    assert!(said.contains("[VNC] rabbit_port: \"0\" is no port"), "{said}");
}

#[test]
fn named_listens_where_its_statements_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("named.conf");
    let text = "options { directory \"/d\"; listen-on port 53 { any; }; };\n\
                key \"rndc-key\" { algorithm hmac-md5; secret \"c2VjcmV0\"; };\n\
                controls { inet 127.0.0.1 port 8094 allow { 127.0.0.1; } keys { \"rndc-key\"; }; };\n";
    std::fs::write(&path, text).unwrap();
    let planned = plan(named("named").unwrap(), path.clone()).unwrap();
    let places: Vec<_> = planned.listeners.iter().map(|it| it.address.to_string()).collect();
    assert_eq!(places, ["0.0.0.0:53", "127.0.0.1:8094"]);
    std::fs::write(&path, text.replace("port 53 ", "")).unwrap();
    let said = plan(named("named").unwrap(), path).unwrap_err();
    assert!(said.contains("[options] listen-on: "), "{said}");
}

#[test]
fn stunnel_forwards_and_needs_its_certificate() {
    let component = named("stunnel").unwrap();
    let (folder, _) = written(&BTreeMap::new());
    let pem = folder.path().join("private.pem");
    let path = folder.path().join("stunnel.conf");
    let text =
        format!("cert={}\n[redis]\naccept=10.0.0.1:6389\nconnect=127.0.0.1:6389\n", pem.display());
    std::fs::write(&path, text).unwrap();
    let said = plan(component, path.clone()).unwrap_err();
    assert!(said.contains("cert: read ") && said.contains("mount the Secret"), "{said}");
    let made = rcgen::generate_simple_self_signed(["redis".to_owned()]).unwrap();
    std::fs::write(&pem, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    let planned = plan(component, path).unwrap();
    let listener = planned.listeners.first().unwrap();
    let wanted = Server { host: "127.0.0.1".into(), port: 6389 };
    assert_eq!(listener.reply, Reply::From(wanted));
    assert!(listener.tls.is_some());
}

#[test]
fn kafka_listens_where_it_says_with_the_keys_that_the_last_file_names() {
    let component = named("kafka").unwrap();
    let (folder, path) = written(&BTreeMap::new());
    let text = "listeners=SSL://10.0.0.1:9092\nlog.dirs=/tmp\nnum.partitions=30\n\
                ssl.keystore.location=/none/keystore.jks\nzookeeper.connect=10.0.0.1:2181,10.0.0.2:2181\n";
    std::fs::write(&path, text).unwrap();
    let said = plan(component, path.clone()).unwrap_err();
    assert!(said.contains("ssl.keystore.location: read /none/keystore.jks"), "{said}");
    let pem = folder.path().join("keystore.pem");
    let made = rcgen::generate_simple_self_signed(["kafka".to_owned()]).unwrap();
    std::fs::write(&pem, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, format!("ssl.keystore.location={}\n", pem.display())).unwrap();
    let configuration = Configuration::read(component.format, &[path, other]).unwrap();
    let planned = Plan::of(component, &configuration).unwrap();
    let listener = planned.listeners.first().unwrap();
    assert_eq!(listener.address, ([10, 0, 0, 1], 9092).into());
    assert!(listener.tls.is_some() && planned.connections.iter().all(|one| one.servers.len() == 2));
}
