//! Services that are no part of a Manager, beside those of their kind in their namespace, whoever has these.

use opensdn_policy_components::{ComponentView, Owners};
use opensdn_policy_sdk::{Index, NoSettings, Outcome, Reads, Request, Verdict};

use crate::{Common, Spec, configuration::Configuration, placement, placement::Selector, ports};

const SELECTOR: &str = "/spec/commonConfiguration/nodeSelector";

macro_rules! index {
    ($($index:ident = $name:literal, $kind:literal, $reads:expr);+ $(;)?) => {$(
        pub(crate) const $index: Index = Index {
            name: $name,
            group: "tf.tungsten.io",
            kind: $kind,
            key: "/metadata/namespace",
            reads: $reads,
        };
    )+};
}

index! {
    CASSANDRAS = "cassandras-by-namespace", "Cassandra", &[SELECTOR, "/spec/serviceConfiguration"];
    CONTROLS = "controls-by-namespace", "Control", &[SELECTOR];
    VROUTERS = "vrouters-by-namespace", "Vrouter", &[SELECTOR];
}

macro_rules! judged {
    ($($function:ident: $kind:ident = $name:literal in $index:ident),+ $(,)?) => {$(
        #[derive(Reads)]
        #[reads(group = "tf.tungsten.io", kind = $name)]
        pub(crate) struct $kind {
            #[read("/metadata/ownerReferences")]
            owners: Option<Owners>,
            #[read("/spec")]
            spec: Option<Spec>,
        }

        pub(crate) fn $function(
            request: &Request<$kind>,
            _: &NoSettings,
            verdict: &mut Verdict,
        ) -> Outcome {
            let Some($kind { owners, spec }) = &request.object else { return Ok(()) };
            // What a Manager makes is judged with the Manager.
            if owners.as_ref().and_then(Owners::manager).is_some() {
                return Ok(());
            }
            let nothing = Spec::default();
            let own =
                ComponentView::standalone(&request.kind, &request.name, spec.as_ref().unwrap_or(&nothing));
            judge(&own, &request.namespace, &$index, verdict)
        }
    )+};
}

judged! {
    cassandra: Cassandra = "Cassandra" in CASSANDRAS,
    control: Control = "Control" in CONTROLS,
}

/// What a Manager makes is not judged so.
pub(crate) fn judge(
    own: &ComponentView<'_, Spec>,
    namespace: &str,
    stored: &Index,
    verdict: &mut Verdict,
) -> Outcome {
    let has_ports = own.kind == "Cassandra";
    for found in stored.find(namespace)? {
        if found.name() == own.name {
            continue;
        }
        let configuration = if has_ports { found.part::<Configuration>(1)? } else { None };
        let spec = Spec {
            common_configuration: Common { node_selector: found.part::<Selector>(0)? },
            service_configuration: configuration.unwrap_or_default(),
        };
        let other = ComponentView::standalone(own.kind, found.name(), &spec);
        let both = [other, own.clone()];
        let placed = placement::place(&both, None);
        if let [other, own] = placed.as_slice() {
            placement::judge_beside(own, other, verdict);
            if has_ports {
                ports::judge_beside(own, other, verdict);
            }
        }
    }
    Ok(())
}
