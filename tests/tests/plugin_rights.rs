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
use crate::plugin_status::document;

const VERBS: [&str; 5] = ["list", "get", "create", "patch", "delete"];

/// The rules of a ClusterRole with what the first table of a section has, and no more. Cells with verbs first; a rule of
/// `list` for each resource in backticks that is named in the next.
fn rules(command: &str) -> Result<Vec<Value>, Failed> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference/rights.md");
    let page = std::fs::read_to_string(page)?;
    let start = format!("\n## {command}\n");
    let (_, section) = page.split_once(&start).ok_or("the page has no such section")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let table = section.lines().skip_while(|line| !line.starts_with("| "));
    let mut rules = Vec::new();
    for line in table.take_while(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [verbs, resources, _] = &*cells else { return Err(format!("no row: {line}").into()) };
        let verbs: Vec<&str> = verbs.split(", ").filter(|verb| VERBS.contains(verb)).collect();
        if verbs.is_empty() {
            continue;
        }
        for resource in resources.split('`').skip(1).step_by(2) {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            rules.push(json!({"verbs": verbs, "apiGroups": [group], "resources": [plural]}));
        }
    }
    assert!(rules.len() > 4, "the table of {command} has gone: {rules:?}");
    Ok(rules)
}

/// Requests of the user that were refused for want of a right: what was asked, by verb and resource.
fn refused(sandbox: &Sandbox, user: &str) -> Result<Vec<String>, Failed> {
    let log = std::fs::read_to_string(sandbox.audit_log())?;
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mine = events.filter(|event| event["user"]["username"] == user);
    let refused = mine.filter(|event| event["responseStatus"]["code"] == 403);
    Ok(refused.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect())
}

/// A user with the rights of the page for the command; the page alone.
async fn user_of(sandbox: &Sandbox, command: &str) -> Result<std::path::PathBuf, Failed> {
    let name = format!("page-of-{command}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules(command)?});
    send(sandbox, &["create"], &role).await?.success();
    let (role, user) = (format!("--clusterrole={name}"), format!("--user={name}"));
    kubectl(sandbox, &["create", "clusterrolebinding", &name, &role, &user]).await?.success();
    let file = sandbox.kubeconfig_for(&User::new(&name))?;
    // Bindings take a moment; of what was asked until then nothing is said.
    let may = async || {
        let ask = ["auth", "can-i", "list", "managers.tf.tungsten.io", "-A", "--as", &name];
        kubectl(sandbox, &ask).await.is_ok_and(|said| said.out.trim() == "yes")
    };
    eventually("the rights are known", may).await;
    Ok(file)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_rights_of_their_page_and_no_others_check_and_certs_read_all() -> Outcome {
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
    Ok(())
}
