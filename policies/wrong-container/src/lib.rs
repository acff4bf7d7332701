//! A container that is missing, unknown, or does not do its work.
//!
//! ```yaml
//! kind: Config
//! spec:
//!   serviceConfiguration:
//!     containers:
//!       - {name: apis, image: "…"}              # dropped without a word; the pod has no API
//!       - {name: nodemanager, image: "…", command: []}   # runs the image's entry point instead
//! ```
//!
//! An operator looks each container up by its name: what it does not find tf-operator leaves out of the pod,
//! which is then reported as active; ours makes no pod, and says which image is missing. What image a container runs is judged by `unversioned-image`.
//!
//! What the operator makes of a Manager is not judged: the Manager has been.

mod names;

use opensdn_policy_components::{
    ComponentView, Owners, Services,
    component::{Component, Containers},
    effective_if_given, null_as_default,
};
use opensdn_policy_sdk::{
    Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict, policy,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use names::{DPDK, DPDK_INIT, KERNEL_BUILD, KERNEL_INIT, NODE_INIT, STATUS, nearest};

const UNKNOWN: Message = Message {
    code: "OSDN1301",
    severity: Severity::Deny,
    title: "a container has a name that the component does not know, or one that stands twice",
    explanation: "Containers are looked up by name. An unknown one is left out, and the image \
        that was meant is not used; of two with one name the first wins.",
    hint: "use the names that the component has; kubectl explain KIND.spec.serviceConfiguration \
        lists them",
};

const VROUTER: Message = Message {
    code: "OSDN1302",
    severity: Severity::Deny,
    title: "the vrouters lack a container that they cannot do without",
    explanation: "Without vrouteragent, nodemanager and provisioner there is no data plane on \
        the node. tf-operator's process ends with a panic on such a Vrouter, and with it the \
        management of the whole cluster. Our operator makes no pods of it (ImageMissing). With dpdk the data plane is the \
        container vrouteragentdpdk, which only our operator knows.",
    hint: "add the containers with their images",
};

const MAIN: Message = Message {
    code: "OSDN1303",
    severity: Severity::Deny,
    title: "a component lacks one of its containers",
    explanation: "With tf-operator the pod starts without it and is reported as active, although what the \
        container does is not done. Our operator makes no pods of the component (ImageMissing).",
    hint: "add the containers with their images",
};

const INIT: Message = Message {
    code: "OSDN1304",
    severity: Severity::Warn,
    title: "a component lacks containers that prepare the node",
    explanation: "tf-operator leaves such a step out, or, for vrouters, takes an image with the \
        tag latest from docker.io: it breaks where there is no way to the Internet, and mixes \
        versions. Our operator leaves it out of all of them.",
    hint: "add the containers with their images",
};

const KERNEL: Message = Message {
    code: "OSDN1305",
    severity: Severity::Deny,
    title: "on Ubuntu the vrouters need the container that builds the kernel module",
    explanation: "The module is built on the node by this container alone: tf-operator takes its image from there, and \
        without it the pod has none; our operator leaves the step out then.",
    hint: "add the container vrouterkernelbuildinit with its image, or correct distribution",
};

const COMMAND: Message = Message {
    code: "OSDN1310",
    severity: Severity::Warn,
    title: "a container has a command of its own",
    explanation: "It replaces the script that waits for the configuration, starts the daemon and \
        reloads it. To tf-operator an empty list is not the same as none: it runs the image's entry point. (Of a \
        service of a Manager the empty list is lost on the way to its object, except while it \
        upgrades the cluster.) To our operator it is none.",
    hint: "remove command",
};

const STATUS_IMAGE: Message = Message {
    code: "OSDN1311",
    severity: Severity::Warn,
    title: "the image of contrail-status is not known",
    explanation: "It is derived from the image of nodeinit by replacing contrail-node-init in its \
        name. With another name tf-operator takes nodeinit's own image for it, of \
        opensdn-node-init of the releases since R25.1 too, which our operator knows; of vrouters that takes the image \
        that is given alone.",
    hint: "add the container nodeinit-status-prefetch with its image",
};

/// Containers that an administrator left out by intention, separated by commas.
const LEFT_OUT: &str = "opensdn.io/without-containers";
/// Those that may be.
const OPTIONAL: [&str; 2] = ["devicemanager", "dnsmasq"];

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/metadata/annotations/opensdn.io~1without-containers")]
    left_out: Option<String>,
    #[read("/spec/commonConfiguration/distribution")]
    distribution: Option<String>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Standalone {
    #[read("/metadata/annotations/opensdn.io~1without-containers")]
    left_out: Option<String>,
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Common,
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: Service,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Common {
    distribution: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Service {
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<Container>,
    dpdk: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: Option<String>,
    image: Option<String>,
    command: Option<Vec<String>>,
}

impl Container {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// A component with what else is to be known to judge its containers.
struct Judged<'a> {
    component: &'a ComponentView<'a, Spec>,
    known: &'static Containers,
    left_out: &'a str,
    ubuntu: bool,
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { left_out, distribution, services: Some(services) }) = &request.object else {
        return Ok(());
    };
    let nothing = Spec::default();
    for component in services.walk_all(&nothing) {
        let own = component.spec.common_configuration.distribution.as_ref();
        let own = (own, component.shared("/distribution"));
        let common = (distribution.as_ref(), "/spec/commonConfiguration/distribution".into());
        let ubuntu =
            effective_if_given(own, Some(common)).value.is_some_and(|name| name == "ubuntu");
        judge(&component, left_out.as_deref(), ubuntu, verdict);
    }
    Ok(())
}

fn standalone(request: &Request<Standalone>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Standalone { left_out, owners, spec }) = &request.object else { return Ok(()) };
    if owners.as_ref().and_then(Owners::manager).is_some() {
        return Ok(());
    }
    let nothing = Spec::default();
    let spec = spec.as_ref().unwrap_or(&nothing);
    let ubuntu = spec.common_configuration.distribution.as_deref() == Some("ubuntu");
    let component = ComponentView::standalone(&request.kind, &request.name, spec);
    judge(&component, left_out.as_deref(), ubuntu, verdict);
    Ok(())
}

fn judge(
    component: &ComponentView<'_, Spec>,
    left_out: Option<&str>,
    ubuntu: bool,
    verdict: &mut Verdict,
) {
    if let Some(known) = Component::of_kind(component.kind).map(|component| &component.containers) {
        let judged = Judged { component, known, left_out: left_out.unwrap_or_default(), ubuntu };
        judged.names(verdict);
        judged.missing(verdict);
        judged.commands(verdict);
        judged.status_image(verdict);
    }
}

impl Judged<'_> {
    fn at(&self) -> Pointer {
        self.component.setting("/containers")
    }

    fn given(&self) -> &[Container] {
        &self.component.spec.service_configuration.containers
    }

    fn has(&self, name: &str) -> bool {
        self.given().iter().any(|container| container.name() == name)
    }

    /// Whether DPDK is asked for. A profile may do so: then the container says it.
    fn is_dpdk(&self) -> bool {
        self.asks_for_dpdk() || (self.component.kind == "Vrouter" && self.has(DPDK))
    }

    fn asks_for_dpdk(&self) -> bool {
        let given = &self.component.spec.service_configuration;
        self.component.kind == "Vrouter" && given.dpdk.is_some()
    }

    /// What brings the data plane of a vrouter to the node, but for that which is built there.
    fn brings_data_plane(&self) -> Option<&'static str> {
        match self.component.kind {
            "Vrouter" if self.is_dpdk() => Some(DPDK_INIT),
            "Vrouter" if !self.ubuntu => Some(KERNEL_INIT),
            _ => None,
        }
    }

    fn names(&self, verdict: &mut Verdict) {
        let title = self.component.title();
        for (number, container) in self.given().iter().enumerate() {
            let name = container.name();
            let finding = || UNKNOWN.at(self.at().index(number).key("name"));
            if !self.known.all().any(|known| known == name) {
                let what = if name.is_empty() {
                    format!("{title}: a container has no name")
                } else {
                    format!("{title}: there is no container {name:?}")
                };
                // It is left out of the pod, which does no harm if it was not meant for another.
                verdict.add(match nearest(self.known, name) {
                    Some(meant) => finding().says(what).hint(format!("did you mean {meant}?")),
                    None => {
                        let names: Vec<_> = self.known.all().collect();
                        let finding = if name.is_empty() {
                            finding()
                        } else {
                            finding().severity(Severity::Warn)
                        };
                        let hint = format!("remove it, or use one of: {}", names.join(", "));
                        finding.says(format!("{what}; it is left out")).hint(hint)
                    }
                });
            } else if self.given().iter().take(number).any(|before| before.name() == name) {
                let text = format!("{title}: container {name} stands twice; the first is used");
                verdict.add(finding().says(text).hint("remove one of them"));
            }
        }
    }

    fn missing(&self, verdict: &mut Verdict) {
        let title = self.component.title();
        let left_out = |name: &str| {
            OPTIONAL.contains(&name) && self.left_out.split(',').any(|left| left.trim() == name)
        };
        let main = self.known.main.iter().copied().chain(self.asks_for_dpdk().then_some(DPDK));
        let main: Vec<&str> = main.filter(|name| !self.has(name)).collect();
        let needed: Vec<&str> = main.iter().copied().filter(|name| !left_out(name)).collect();
        if !needed.is_empty() {
            let text = format!("{title}: no container {}", needed.join(", "));
            let message = if self.component.kind == "Vrouter" { &VROUTER } else { &MAIN };
            let finding = message.at(self.at()).says(text);
            verdict.add(if needed.iter().all(|name| OPTIONAL.contains(name)) {
                finding.severity(Severity::Warn).hint(format!(
                    "add it with its image, or, if it is left out by intention, annotate the \
                     object: {LEFT_OUT}={}",
                    main.join(",")
                ))
            } else {
                finding
            });
        }
        let init = self.known.init.iter().copied().chain(self.brings_data_plane());
        let init: Vec<&str> = init.filter(|name| !self.has(name)).collect();
        if !init.is_empty() {
            let text = format!("{title}: no container {}", init.join(", "));
            verdict.add(INIT.at(self.at()).says(text));
        }
        let builds = self.component.kind == "Vrouter" && self.ubuntu && !self.is_dpdk();
        if builds && !self.has(KERNEL_BUILD) {
            let text = format!("{title}: distribution is ubuntu, and there is no {KERNEL_BUILD}");
            verdict.add(KERNEL.at(self.at()).says(text));
        }
    }

    fn commands(&self, verdict: &mut Verdict) {
        for (number, container) in self.given().iter().enumerate() {
            let Some(command) = &container.command else { continue };
            let name = container.name();
            let finding = COMMAND.at(self.at().index(number).key("command"));
            verdict.add(if command.is_empty() {
                let of_manager = self.component.at != Pointer::from("/spec");
                let severity = if of_manager { Severity::Warn } else { Severity::Deny };
                finding.severity(severity).says(format!(
                    "container {name}: an empty command runs the image's entry point, and the \
                     daemon never gets its configuration"
                ))
            } else {
                finding.says(format!(
                    "container {name}: the command replaces the script that waits for the \
                     configuration and starts the daemon"
                ))
            });
        }
    }

    fn status_image(&self, verdict: &mut Verdict) {
        if self.has(STATUS) {
            return;
        }
        for (number, container) in self.given().iter().enumerate() {
            let image = container.image.as_deref().unwrap_or_default();
            if container.name() == NODE_INIT && !image.contains("contrail-node-init") {
                let at = self.at().index(number).key("image");
                let text = format!(
                    "{image:?} has no contrail-node-init in its name, and there is no container \
                     {STATUS}"
                );
                verdict.add(STATUS_IMAGE.at(at).says(text));
            }
        }
    }
}

policy! {
    name: "wrong-container",
    summary: "every component has its containers, and each does its work",
    settings: NoSettings,
    messages: [UNKNOWN, VROUTER, MAIN, INIT, KERNEL, COMMAND, STATUS_IMAGE],
    validate: [manager, standalone],
}
