//! Values that two services must agree on.

use opensdn_policy_components::{ComponentView, Network};
use opensdn_policy_sdk::{Failure, Message, Outcome, Pointer, Severity, Verdict};

use crate::Spec;

pub(crate) const AS_NUMBERS: Message = Message {
    code: "OSDN1607",
    severity: Severity::Warn,
    title: "a Control has another AS number than the cluster",
    explanation: "The number of Config is the cluster's, that of a Control is written into its own \
        routers: where the two differ, its control nodes peer with the others as those of another \
        AS. In a subcluster that is how it must be.",
    hint: "give asnNumber and globalASNNumber the same value, or remove both; if the Control is a \
        subcluster, set its subcluster",
};

pub(crate) const DATA_SUBNETS: Message = Message {
    code: "OSDN1610",
    severity: Severity::Warn,
    title: "the vrouters look for their control nodes in another network",
    explanation: "Agents get the addresses of the control nodes that lie in their own \
        dataSubnet. Where the Control listens in another network, that is none. With tf-operator they turn to the \
        nodes of Config then, where no control node listens. Our operator gives them the addresses in \
        the network of the Control, which works where that is reached from the vrouters' own.",
    hint: "give the Vrouter a dataSubnet in which the Control's lies, or none",
};

pub(crate) const SUBCLUSTERS: Message = Message {
    code: "OSDN1613",
    severity: Severity::Warn,
    title: "the vrouters are in a subcluster that no Control here makes",
    explanation: "A subcluster comes into being by the control nodes of a Control that has its name, of this Kubernetes \
        cluster or of another with the same Config API. Where there is none the vrouters cannot be registered: \
        their provisioner tries again without limit.",
    hint: "give a Control the same subcluster, or remove it from the Vrouter; leave it if a Control elsewhere has it",
};

/// What a Vrouter and its Control have to agree on.
pub(crate) struct Settings<'a> {
    pub(crate) title: String,
    pub(crate) data_subnet: Option<&'a str>,
    pub(crate) subcluster: Option<&'a str>,
}

impl<'a> Settings<'a> {
    fn of(component: &ComponentView<'a, Spec>) -> Self {
        let configuration = &component.spec.service_configuration;
        Self {
            title: component.title(),
            data_subnet: configuration.data_subnet.as_deref(),
            subcluster: configuration.subcluster.as_deref(),
        }
    }

    /// Empty where there is none.
    fn subcluster(&self) -> &'a str {
        self.subcluster.unwrap_or_default()
    }

    fn makes(&self, subcluster: &str) -> bool {
        self.subcluster() == subcluster
    }
}

/// Whether a Control that is no part of the Manager makes the subcluster.
pub(crate) type Elsewhere<'a> = &'a dyn Fn(&str) -> Result<bool, Failure>;

pub(crate) fn judge(
    components: &[ComponentView<'_, Spec>],
    elsewhere: Elsewhere<'_>,
    verdict: &mut Verdict,
) -> Outcome {
    let of_kind =
        |kind: &'static str| components.iter().filter(move |component| component.kind == kind);
    for vrouter in of_kind("Vrouter") {
        let own = Settings::of(vrouter);
        let name = vrouter.spec.service_configuration.control_instance.as_deref();
        if let Some(control) = of_kind("Control").find(|control| name == Some(control.name)) {
            compare(&own, &Settings::of(control), &vrouter.setting(""), verdict);
        }
        let made = of_kind("Control").any(|control| Settings::of(control).makes(own.subcluster()));
        if !made {
            judge_subcluster(&own, &vrouter.setting(""), elsewhere, verdict)?;
        }
    }
    if let Some(config) = of_kind("Config").next() {
        let number = config.spec.service_configuration.global_asn_number.number().unwrap_or(64512);
        for control in of_kind("Control").filter(|one| Settings::of(one).subcluster().is_empty()) {
            let own = control.spec.service_configuration.asn_number.number().unwrap_or(64512);
            if own != number {
                let (control_title, title) = (control.title(), config.title());
                let text = format!("{control_title} has AS number {own}, {title} {number}");
                verdict.add(AS_NUMBERS.at(control.setting("/asnNumber")).says(text));
            }
        }
    }
    Ok(())
}

/// Compares a Vrouter with the Control that it names; `at` is where the settings of the Vrouter
/// stand. Without a network of its own a Vrouter takes all addresses of the control nodes, and those
/// of a Control without one are the nodes', which may lie in the Vrouter's: only of two networks that
/// do not meet it is certain that none fits (tf-operator, `pkg/apis/tf/v1alpha1/base_types.go:1113`).
pub(crate) fn compare(
    own: &Settings<'_>,
    theirs: &Settings<'_>,
    at: &Pointer,
    verdict: &mut Verdict,
) {
    if let (Some(left), Some(right)) = (own.data_subnet, theirs.data_subnet)
        && let (Some(own_network), Some(their_network)) =
            (Network::parse(left), Network::parse(right))
        && !own_network.meets(&their_network)
    {
        let text = format!("{} has dataSubnet {left}, {} {right}", own.title, theirs.title);
        verdict.add(DATA_SUBNETS.at(at.key("dataSubnet")).says(text));
    }
}

/// Judges the subcluster of a Vrouter that no Control beside it makes.
pub(crate) fn judge_subcluster(
    own: &Settings<'_>,
    at: &Pointer,
    elsewhere: Elsewhere<'_>,
    verdict: &mut Verdict,
) -> Outcome {
    let name = own.subcluster();
    if !name.is_empty() && !elsewhere(name)? {
        let text = format!("{} has subcluster {name}, and no Control has", own.title);
        verdict.add(SUBCLUSTERS.at(at.key("subcluster")).says(text));
    }
    Ok(())
}
