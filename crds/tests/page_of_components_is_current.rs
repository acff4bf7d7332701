//! The page of components (`docs/src/reference/components.md`) is made of the table that policies, schemas and the
//! operator read. `UPDATE=1` writes it again.

#![allow(clippy::unwrap_used, reason = "a test, and the line says where")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use opensdn_crds::component::{
    COMPONENTS, Component, Count, Open, Place, Port, Setting, Transport,
};

const HEAD: &str = "\
# The components

What each of the thirteen kinds consists of, where it listens on the network of its nodes, and what it waits for. As every pod
has the network of its node, no two components may use one number on one node; what a firewall between the nodes has to let
through is among these. Generated from `crds/src/component.rs`, which the policies and the operator read too.

A port *set by* a field has the number of the field of `spec.serviceConfiguration`, or else the one in the table.
";

#[test]
fn page_of_components_is_current() {
    let mut page = HEAD.to_owned();
    for component in COMPONENTS {
        section(&mut page, component).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/components.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "{} is out of date: run UPDATE=1 cargo test -p opensdn-crds --test page_of_components_is_current",
        path.display()
    );
}

fn section(page: &mut String, component: &Component) -> std::fmt::Result {
    let Component { kind, plural, key, count, longest_name, containers, ports, needs } = component;
    let many = if *count == Count::Many { ", a list" } else { "" };
    writeln!(page, "\n## {kind}\n")?;
    writeln!(page, "| | |\n| --- | --- |")?;
    writeln!(page, "| kubectl | `{plural}.tf.tungsten.io` |")?;
    writeln!(page, "| in a Manager | `spec.services.{key}`{many} |")?;
    writeln!(page, "| longest name | {longest_name} characters |")?;
    writeln!(page, "| containers | {} |", in_backticks(containers.main))?;
    if !containers.asked.is_empty() {
        writeln!(page, "| where it is asked for | {} |", in_backticks(containers.asked))?;
    }
    let init = [containers.init, containers.conditional].concat();
    if !init.is_empty() {
        writeln!(page, "| init containers | {} |", in_backticks(&init))?;
    }
    let needs: Vec<String> = needs
        .iter()
        .map(|need| match need.place {
            Place::Anywhere => need.kind.to_owned(),
            Place::SameNode => format!("{} on the same node", need.kind),
        })
        .collect();
    writeln!(
        page,
        "| waits for | {} |",
        if needs.is_empty() { "nothing".to_owned() } else { needs.join(", ") }
    )?;
    writeln!(
        page,
        "\n| port | protocol | set by | container | when |\n| --- | --- | --- | --- | --- |"
    )?;
    ports.iter().try_for_each(|port| row(page, port))
}

fn in_backticks(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn row(page: &mut String, port: &Port) -> std::fmt::Result {
    let Port { container, number, setting, transport, open } = port;
    let protocol = match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
        Transport::TcpAndUdp => "TCP, UDP",
    };
    let setting = match setting {
        Setting::Fixed => "nothing".to_owned(),
        Setting::Field(field) => format!("`{field}`"),
        Setting::Above(field, more) => format!("`{field}` + {more}"),
        Setting::ShownAs(field) => format!("nothing; clients get `{field}`"),
    };
    let open = match open {
        Open::Always => "always".to_owned(),
        Open::Never => "never".to_owned(),
        Open::WhenTrue(field) => format!("`{field}` is true"),
        Open::UnlessFalse(field) => format!("unless `{field}` is false"),
        Open::PerWorker(field) => {
            format!("one for each worker above the first (`{field}`), upwards")
        }
    };
    writeln!(page, "| {number} | {protocol} | {setting} | `{container}` | {open} |")
}
