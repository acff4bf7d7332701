//! The rights that an installation needs, by the objects of the shipped manifests.

use std::collections::BTreeSet;

use opensdn_deploy::{RenderError, Values};
use serde_json::{Value, json};

use super::report::Verdict;
use super::world::{Applied, World};
use super::{few, number_of};
use crate::snapshot::{Read, namespace, text};

/// What is done with each object: looked at, and applied.
const VERBS: [&str; 3] = ["get", "create", "patch"];

/// A right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    group: String,
    resource: String,
    namespace: String,
    verb: &'static str,
}

impl Right {
    pub(super) fn everything() -> Self {
        let any = || "*".to_owned();
        Self { group: any(), resource: any(), namespace: String::new(), verb: "*" }
    }

    pub(super) fn on_roles(verb: &'static str) -> Self {
        let group = "rbac.authorization.k8s.io".to_owned();
        Self { group, resource: "clusterroles".to_owned(), namespace: String::new(), verb }
    }

    /// The question for it.
    pub(super) fn review(&self) -> Value {
        let Self { group, resource, namespace, verb } = self;
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "group": group, "resource": resource, "namespace": namespace, "verb": verb}}})
    }

    pub(super) fn text(&self) -> String {
        let Self { group, resource, namespace, verb } = self;
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
        format!("{verb} {resource}{group}{place}")
    }
}

/// All that the shipped manifests need, or an installation with these values.
///
/// # Errors
/// They cannot be rendered.
pub(super) fn needed(values: Option<&Values>) -> Result<Vec<Right>, RenderError> {
    let steps = match values {
        Some(values) => opensdn_deploy::render(values)?,
        None => [opensdn_deploy::operator()?, opensdn_deploy::webhook()?].concat(),
    };
    let mut rights = BTreeSet::new();
    for step in &steps {
        for object in &step.objects {
            let version = text(object, "/apiVersion");
            let group = version.split_once('/').map_or("", |(group, _)| group);
            for verb in VERBS {
                rights.insert(Right {
                    group: group.to_owned(),
                    resource: plural(text(object, "/kind")),
                    namespace: namespace(object).to_owned(),
                    verb,
                });
            }
        }
    }
    Ok(rights.into_iter().collect())
}

/// As the API server has it, of the kinds in our manifests.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        // OpenShift's SecurityContextConstraints.
        None if kind.ends_with("constraints") => kind,
        None => format!("{kind}s"),
    }
}

/// Whether the user has them.
pub(super) fn rights(world: &World) -> Verdict {
    let asked = match &world.rights {
        Read::Known(asked) => asked,
        Read::Absent => {
            return Verdict::uncertain("the API server does not answer reviews of rights");
        }
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("rights cannot be asked for: {why}"));
        }
    };
    let missing: Vec<String> =
        asked.iter().filter(|(_, has)| !has).map(|(right, _)| right.clone()).collect();
    if !missing.is_empty() {
        let count = missing.len();
        return Verdict::fail(format!(
            "{count} of {} rights are missing: {}",
            asked.len(),
            few(&missing)
        ));
    }
    // A binding cannot be tried before its role is there: the first one would be refused.
    let may_bind = world.may_grant == Read::Known(true);
    if let Some(applied) = &world.applied
        && (may_bind || !matches!(applied, Ok(Applied { refused, .. }) if refused.is_empty()))
    {
        return tried(asked.len(), applied);
    }
    if world.may_grant != Read::Known(true) {
        return Verdict::uncertain(format!(
            "all {} are granted; whether you may grant what the roles have, which needs escalate and bind, or all of \
             it, is known only when they are created",
            number_of(asked.len(), "right")
        ));
    }
    Verdict::ok(format!("all {} are granted", number_of(asked.len(), "needed right")))
}

/// Whether the API server would take the objects. It has asked for what roles grant, too.
fn tried(rights: usize, applied: &Result<Applied, String>) -> Verdict {
    let rights = format!("all {} are granted", number_of(rights, "needed right"));
    match applied {
        Ok(Applied { objects, refused, untried }) if refused.is_empty() && !untried.is_empty() => {
            Verdict::uncertain(format!(
                "{rights}; whether {} of {objects} objects would be refused is not known: {}",
                untried.len(),
                few(untried)
            ))
            .fix("kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
        }
        Ok(Applied { objects, refused, .. }) if refused.is_empty() => {
            Verdict::ok(format!("{rights}, and none of {objects} objects would be refused"))
        }
        Ok(Applied { objects, refused, .. }) => Verdict::fail(format!(
            "{rights}, but {} of {objects} objects would be refused: {}",
            refused.len(),
            few(refused)
        ))
        .fix("kubectl opensdn install --dry-run=server"),
        Err(why) => Verdict::uncertain(format!(
            "{rights}; whether objects would be refused is not known: {why}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use opensdn_deploy::Values;
    use opensdn_deploy::values::Platform;

    use super::{Right, VERBS, needed};

    /// The row of the page, with all kinds of the manifests.
    #[test]
    fn the_page_of_rights_has_what_an_installation_needs() {
        const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference/rights.md");
        let named = |right: &Right| match right.group.is_empty() {
            true => format!("`{}`", right.resource),
            false => format!("`{}.{}`", right.resource, right.group),
        };
        let resources: BTreeSet<String> = needed(None).unwrap().iter().map(named).collect();
        let resources = Vec::from_iter(resources).join(", ");
        let start = format!("| {} | ", VERBS.join(", "));
        let row = format!("{start}{resources} | the objects of an installation |");
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (before, rest) = page.split_once("\n## install\n").unwrap();
        let stored = rest.lines().find(|line| line.starts_with(start.trim_end())).unwrap();
        if std::env::var_os("UPDATE").is_some() {
            let rest = rest.replacen(stored, &row, 1);
            std::fs::write(PAGE, format!("{before}\n## install\n{rest}")).unwrap();
        } else {
            assert_eq!(stored, row, "UPDATE=1 cargo test -p kubectl-opensdn the_page_of_rights");
        }
    }

    #[test]
    fn each_kind_of_the_manifests_has_the_name_by_which_the_api_server_serves_it() {
        const KNOWN: [&str; 20] = [
            "admissionpolicies",
            "clusterrolebindings",
            "clusterroles",
            "configmaps",
            "customresourcedefinitions",
            "deployments",
            "mutatingwebhookconfigurations",
            "namespaces",
            "networkpolicies",
            "poddisruptionbudgets",
            "priorityclasses",
            "rolebindings",
            "roles",
            "secrets",
            "securitycontextconstraints",
            "serviceaccounts",
            "services",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ];
        let openshift = Values { platform: Platform::Openshift, ..Values::default() };
        let all = [needed(None), needed(Some(&Values::default())), needed(Some(&openshift))];
        let all = all.map(Result::unwrap);
        assert!(all.iter().all(|rights| rights.len() > 30));
        let has_scc = |rights: &[Right]| {
            rights.iter().any(|right| right.resource == "securitycontextconstraints")
        };
        assert_eq!(all.each_ref().map(|rights| has_scc(rights)), [false, false, true]);
        for right in all.into_iter().flatten() {
            assert!(KNOWN.contains(&right.resource.as_str()), "{right:?}");
        }
    }
}
