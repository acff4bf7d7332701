//! The rights of the page [Rights of each command](../../docs/src/reference/rights.md): with those of a command, and no
//! others, a real API server refuses none of its requests. That of `status` is in `plugin_status`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::written_cluster::written;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::plugin_check::check;
use crate::plugin_install::Plugin;
use crate::plugin_status::{document, rules_of_the_page};

const VERBS: [&str; 5] = ["list", "get", "create", "patch", "delete"];

/// The rules of a ClusterRole with what the first table of a section has, and no more.
fn rules(command: &str) -> Result<Vec<Value>, Failed> {
    let mut rules = Vec::new();
    for (verbs, resources) in rows(command)? {
        // What an installation has is said once.
        let more =
            if resources.contains("all of [install]") { rows("install")? } else { Vec::new() };
        for cell in more.iter().map(|(_, cell)| cell).chain([&resources]) {
            rules.extend(rules_of_cell(&verbs, cell));
        }
        if resources.contains("every kind with namespaces") {
            rules.push(json!({"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}));
        }
    }
    assert!(rules.len() > 4, "the table of {command} has gone: {rules:?}");
    Ok(rules)
}

/// The verbs and the cell with resources of each row.
fn rows(command: &str) -> Result<Vec<(Vec<String>, String)>, Failed> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference/rights.md");
    let page = std::fs::read_to_string(page)?;
    let start = format!("\n## {command}\n");
    let (_, section) = page.split_once(&start).ok_or("the page has no such section")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let table = section.lines().skip_while(|line| !line.starts_with("| "));
    let mut rows = Vec::new();
    for line in table.take_while(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [verbs, resources, _] = &*cells else { return Err(format!("no row: {line}").into()) };
        let verbs = verbs.split(", ").filter(|verb| VERBS.contains(verb));
        let verbs: Vec<String> = verbs.map(str::to_owned).collect();
        if !verbs.is_empty() {
            rows.push((verbs, (*resources).to_owned()));
        }
    }
    Ok(rows)
}

/// A rule for each resource in backticks; a group in backticks is all of its kinds.
fn rules_of_cell(verbs: &[String], cell: &str) -> Vec<Value> {
    let rule = |resource: &str| {
        let (plural, group) = match resource {
            "tf.tungsten.io" | "opensdn.io" => ("*", resource),
            _ => resource.split_once('.').unwrap_or((resource, "")),
        };
        json!({"verbs": verbs, "apiGroups": [group], "resources": [plural]})
    };
    cell.split('`').skip(1).step_by(2).map(rule).collect()
}

/// Requests of the user that were refused for want of a right: what was asked, by verb and resource.
fn refused(sandbox: &Sandbox, user: &str) -> Result<Vec<String>, Failed> {
    let mine = sandbox.requests_of(user)?;
    let refused = mine.iter().filter(|event| event["responseStatus"]["code"] == 403);
    Ok(refused.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect())
}

/// A user with the rights of the page for the command; the page alone.
async fn user_of(sandbox: &Sandbox, command: &str) -> Result<std::path::PathBuf, Failed> {
    user_with(sandbox, command.split(' ').next().unwrap_or_default(), rules(command)?).await
}

async fn user_with(
    sandbox: &Sandbox,
    command: &str,
    rules: Vec<Value>,
) -> Result<std::path::PathBuf, Failed> {
    let name = format!("page-of-{command}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules});
    send(sandbox, &["create"], &role).await?.success();
    let (role, user) = (format!("--clusterrole={name}"), format!("--user={name}"));
    kubectl(sandbox, &["create", "clusterrolebinding", &name, &role, &user]).await?.success();
    let file = sandbox.kubeconfig_for(&User::new(&name))?;
    // Bindings take a moment; of what was asked until then nothing is said.
    let may = async || {
        let ask = ["auth", "can-i", "list", "configmaps", "-A", "--as", &name];
        kubectl(sandbox, &ask).await.is_ok_and(|said| said.out.trim() == "yes")
    };
    eventually("the rights are known", may).await;
    Ok(file)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_rights_of_their_pages_and_no_others_check_certs_and_support_bundle_read_all()
-> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    written(&sandbox).await?;
    let eve = user_of(&sandbox, "check").await?;
    let (report, _) = document(&eve, &["check"])?;
    let all = report["checks"].as_array().ok_or("no checks")?;
    let unread = all.iter().filter(|one| {
        let message = one["message"].as_str().unwrap_or_default();
        // It is about the rights of an installation, which are more.
        one["id"] != "K003"
            && ["may not be read", "forbidden"].iter().any(|part| message.contains(part))
    });
    assert_eq!(unread.collect::<Vec<_>>(), Vec::<&Value>::new());
    assert_eq!(check(&report, "K003")["result"], "fail", "{report:#}");
    assert_eq!(refused(&sandbox, "page-of-check")?, Vec::<String>::new());

    let eve = user_of(&sandbox, "certs").await?;
    let (report, _) = document(&eve, &["certs", "status"])?;
    let unread = report["notRead"].as_array().cloned().unwrap_or_default();
    assert!(unread.is_empty(), "{unread:#?}");
    assert_eq!(refused(&sandbox, "page-of-certs")?, Vec::<String>::new());

    let rights = [rules("support-bundle")?, rules("check")?, rules_of_the_page()?].concat();
    let eve = user_with(&sandbox, "support-bundle", rights).await?;
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("a.tar.gz").display().to_string();
    let flags = ["support-bundle", "--no-files", "--out", &out];
    let (report, code) = document(&eve, &flags)?;
    assert_eq!((code, &report["failed"]), (0, &json!([])), "{report:#}");
    assert_eq!(refused(&sandbox, "page-of-support-bundle")?, Vec::<String>::new());
    Ok(())
}

/// What an installation grants its user has to have, or to be allowed to grant.
fn may_grant() -> Value {
    json!({"verbs": ["escalate", "bind"], "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles", "clusterroles"]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_rights_of_their_pages_and_no_others_install_and_uninstall_do_their_work()
-> Outcome {
    // Controllers run: without them no namespace ends.
    let sandbox = Sandbox::start().await?;
    let rights = [rules("install")?, rules("check")?, vec![may_grant()]].concat();
    let eve = user_with(&sandbox, "install", rights).await?;
    for line in [
        "install --yes --wait=false",
        "install --yes --wait=false --set operator.watchedNamespaces=net",
    ] {
        Plugin::by(eve.clone())?.run(line).await?.ended(0);
    }
    assert_eq!(refused(&sandbox, "page-of-install")?, Vec::<String>::new());

    let eve = user_of(&sandbox, "uninstall and prune").await?;
    Plugin::by(eve.clone())?.run("prune --yes").await?.ended(0);
    let context = kubectl(&sandbox, &["config", "current-context"]).await?;
    let purge = format!("uninstall --purge --confirm {}", context.success().trim());
    Plugin::by(eve)?.run(&purge).await?.ended(0);
    assert_eq!(refused(&sandbox, "page-of-uninstall")?, Vec::<String>::new());
    let left = kubectl(&sandbox, &["get", "crds,namespaces,clusterroles", "-o", "name"]).await?;
    let ours: Vec<&str> = left
        .success()
        .lines()
        .filter(|name| name.contains("opensdn") || name.contains("tungsten"))
        .collect();
    assert_eq!(ours, Vec::<&str>::new());
    Ok(())
}
