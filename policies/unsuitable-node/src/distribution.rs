//! The system for which the kernel module of the vrouter is, against that of the nodes.

use opensdn_policy_components::{ComponentView, Field, effective_if_given, nodes::few};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::{Common, Spec, nodes::Node};

pub(crate) const DISTRIBUTION: Message = Message {
    code: "OSDN1215",
    severity: Severity::Warn,
    title: "distribution is not the system of the nodes",
    explanation: "With ubuntu the container vrouterkernelbuildinit builds the kernel module of the vrouter on the node, \
        in an image of Ubuntu. With any other value, or none, vrouterkernelinit brings it: up to R25.1 it has modules for \
        kernels of Red Hat's family alone, later it builds on the node with that family's compiler. On nodes of the other \
        family the module as a rule is missing or does not fit, and their pods do not get beyond that container.",
    hint: "set distribution to ubuntu for nodes with Ubuntu, remove it for those of Red Hat's family, and list the \
        container that it takes; nodes of both families need a group of vrouters each, with a nodeSelector and a \
        distribution of its own",
};

/// How the names of the systems begin that are of Red Hat's family (`PRETTY_NAME` of /etc/os-release).
const RED_HATS: &[&str] =
    &["Red Hat", "CentOS", "Rocky Linux", "AlmaLinux", "Oracle Linux", "Fedora"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Ubuntu,
    RedHat,
}

impl Family {
    /// Of a node; none of a system of which we do not know for which modules it takes.
    fn of(system: &str) -> Option<Self> {
        if system.starts_with("Ubuntu") {
            return Some(Self::Ubuntu);
        }
        RED_HATS.iter().any(|name| system.starts_with(name)).then_some(Self::RedHat)
    }

    fn container(self) -> &'static str {
        match self {
            Self::Ubuntu => "vrouterkernelbuildinit",
            Self::RedHat => "vrouterkernelinit",
        }
    }
}

/// For which kernels vrouters bring their module, and what says so.
pub(crate) struct Module {
    family: Family,
    distribution: Option<String>,
    at: Pointer,
}

/// None where they bring none of their own: without the container, or with DPDK, which a profile may switch on.
pub(crate) fn module(
    component: &ComponentView<'_, Spec>,
    common: Option<&Common>,
) -> Option<Module> {
    let given = &component.spec.service_configuration;
    if component.kind != "Vrouter" || given.dpdk.is_some() || !given.profiles.is_empty() {
        return None;
    }
    let own = component.spec.common_configuration.distribution.as_ref();
    let inherited = common.map(|common| {
        (common.distribution.as_ref(), "/spec/commonConfiguration/distribution".into())
    });
    let Field { value, at } =
        effective_if_given((own, component.shared("/distribution")), inherited);
    let family = match value.map(String::as_str) {
        Some("ubuntu") => Family::Ubuntu,
        _ => Family::RedHat,
    };
    let is_listed = |name| given.containers.iter().any(|one| one.name.as_deref() == Some(name));
    is_listed(family.container()).then(|| Module { family, distribution: value.cloned(), at })
}

impl Module {
    pub(crate) fn judge(
        self,
        component: &ComponentView<'_, Spec>,
        nodes: &[Node],
        verdict: &mut Verdict,
    ) {
        let is_other =
            |node: &&Node| Family::of(&node.system).is_some_and(|family| family != self.family);
        let others: Vec<&Node> = nodes.iter().filter(is_other).collect();
        let Some(first) = others.first() else { return };
        let said = match self.distribution.as_deref() {
            None | Some("") => {
                "distribution is unset, which stands for Red Hat's family".to_owned()
            }
            Some("ubuntu") => "distribution is ubuntu".to_owned(),
            Some(other) => format!("distribution is {other}, which counts as Red Hat's family"),
        };
        let text = format!(
            "{}: {said}, and another system ({}) runs on {} of its {} nodes: {}",
            component.title(),
            first.system,
            others.len(),
            nodes.len(),
            few(others.iter().map(|node| node.name.as_str()))
        );
        verdict.add(DISTRIBUTION.at(self.at).says(text));
    }
}
