//! The pods by which a node pulls images, and what their statuses say of it; pure. A pod has a container for each image, and
//! none runs anything of it: it is started with a program that no image has, so that its start fails as soon as the image is
//! there.

use std::time::Duration;

use opensdn_deploy::names::{MANAGED_BY_LABEL, NAME_LABEL};
use serde_json::{Value, json};

use super::super::objects::unprivileged;
use super::Pull;
use crate::install::object::MANAGER;
use crate::snapshot::{label, list, text};

const NAME: &str = "opensdn-pull";
/// By what run a pod was made.
const RUN: &str = "opensdn.io/pull-run";
/// Which of its pods it is.
const NUMBER: &str = "opensdn.io/pull-number";
/// No image has it.
const PROGRAM: &str = "/opensdn-only-pulls-this-image";
/// So long longer than a run the kubelet lets a pod of it be, if the run was killed.
const MORE: Duration = Duration::from_secs(60);

/// Reasons for which a container waits whose image is there.
const THERE: [&str; 4] =
    ["RunContainerError", "CreateContainerError", "CreateContainerConfigError", "CrashLoopBackOff"];
/// Reasons for which it waits as its image cannot be had; the kubelet tries some of them again, later and later.
const NOT_HAD: [&str; 6] = [
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// The first of these; what it says is what the later ones are about.
const FIRST: &str = "ErrImagePull";

/// A pod that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) number: usize,
    pub(super) namespace: String,
    pub(super) node: String,
    pub(super) images: Vec<String>,
    pub(super) secrets: Vec<String>,
    /// Why its Secrets are not used, if they are not.
    pub(super) without: Option<String>,
}

impl Wanted {
    /// Its name, which no other run has.
    pub(super) fn name(&self, run: &str) -> String {
        format!("{run}-pull-{}", self.number)
    }

    /// Whether the pod is it, of those of the run.
    pub(super) fn is(&self, pod: &Value) -> bool {
        label(pod, NUMBER) == Some(&*self.number.to_string())
    }
}

/// The namespace of the run, which has its pods in other namespaces: they go away with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    pub(super) namespace: &'a str,
    pub(super) uid: &'a str,
}

/// By which its pods are found.
pub(super) fn selector(run: &str) -> String {
    format!("{RUN}={run}")
}

pub(super) fn pod(wanted: &Wanted, owner: Owner<'_>, timeout: Duration) -> Value {
    let containers: Vec<Value> = wanted.images.iter().enumerate().map(container).collect();
    let secrets: Vec<Value> = wanted.secrets.iter().map(|name| json!({"name": name})).collect();
    // What is in the namespace of the run goes away with it as well.
    let owned = wanted.namespace != owner.namespace;
    let owners = owned.then(|| {
        json!({"apiVersion": "v1", "kind": "Namespace", "name": owner.namespace, "uid": owner.uid})
    });
    let owners: Vec<Value> = owners.into_iter().collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": wanted.name(owner.namespace),
            "namespace": wanted.namespace,
            "labels": {NAME_LABEL: NAME, MANAGED_BY_LABEL: MANAGER, RUN: owner.namespace,
                NUMBER: wanted.number.to_string()},
            "ownerReferences": owners,
        },
        "spec": {
            // A kubelet pulls after it has given the pod a network, and without a CNI only that of the node is there.
            "hostNetwork": true,
            "nodeName": wanted.node,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": (timeout + MORE).as_secs(),
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "tolerations": [{"operator": "Exists"}],
            "imagePullSecrets": secrets,
            "containers": containers,
        },
    })
}

/// Its policy of pulling is the default, as that of components is.
fn container((number, image): (usize, &String)) -> Value {
    json!({
        "name": container_name(number),
        "image": image,
        "command": [PROGRAM],
        "resources": {
            "requests": {"cpu": "1m", "memory": "4Mi"},
            "limits": {"cpu": "100m", "memory": "32Mi"},
        },
        "securityContext": unprivileged(),
    })
}

fn container_name(number: usize) -> String {
    format!("image-{number}")
}

/// What a status says of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Settled(Pull),
    /// It may still come, and what there is to say until then.
    Waits(Waits),
}

/// What an image waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// A try of pulling it has failed.
    AfterFailure(String),
    Else(String),
}

/// What the pod says of its image of this number, with what was said before.
pub(super) fn said(pod: Option<&Value>, number: usize, before: Option<&Waits>) -> Said {
    let Some(pod) = pod else {
        return Said::Settled(Pull::Unknown("its pod is gone".to_owned()));
    };
    let container = container_name(number);
    let mut statuses = list(pod, "/status/containerStatuses");
    let Some(status) = statuses.find(|one| text(one, "/name") == container) else {
        return without_status(pod);
    };
    let has = |at: &str| status.pointer(at).is_some();
    if has("/state/terminated") || has("/state/running") || has("/lastState/terminated") {
        return Said::Settled(Pull::Done);
    }
    let (reason, message) =
        (text(status, "/state/waiting/reason"), text(status, "/state/waiting/message"));
    let sentence = match message.trim() {
        "" => reason.to_owned(),
        message => format!("{reason}: {message}"),
    };
    match (reason, before) {
        (reason, _) if THERE.contains(&reason) => Said::Settled(Pull::Done),
        (FIRST, _) => Said::Waits(Waits::AfterFailure(sentence)),
        // Kubelets before 1.31 say there only that they wait.
        (reason, Some(Waits::AfterFailure(first)))
            if NOT_HAD.contains(&reason) && !message.contains(FIRST) =>
        {
            Said::Settled(Pull::Failed(first.clone()))
        }
        (reason, _) if NOT_HAD.contains(&reason) => Said::Settled(Pull::Failed(sentence)),
        ("", _) => Said::Waits(Waits::Else("its kubelet has not taken the pod up".to_owned())),
        _ => Said::Waits(Waits::Else("it is being pulled".to_owned())),
    }
}

/// Its kubelet refused the pod, or has not seen it yet.
fn without_status(pod: &Value) -> Said {
    match text(pod, "/status/phase") {
        "Failed" => {
            let (reason, message) = (text(pod, "/status/reason"), text(pod, "/status/message"));
            Said::Settled(Pull::Unknown(format!(
                "its kubelet refused the pod: {reason}: {message}"
            )))
        }
        _ => Said::Waits(Waits::Else("its kubelet has not taken the pod up".to_owned())),
    }
}

/// What there is to say when the time is over.
pub(super) fn late(waits: Waits, timeout: Duration) -> Pull {
    match waits {
        Waits::AfterFailure(why) => Pull::Failed(why),
        Waits::Else(what) => {
            Pull::Unknown(format!("not known after {} s: {what}", timeout.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            number: 7,
            namespace: "tf".to_owned(),
            node: "w1".to_owned(),
            images: vec!["registry.example.com/a:1".to_owned()],
            secrets: vec!["pull".to_owned()],
            without: None,
        }
    }

    fn waits(reason: &str, message: &str) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        json!({"status": {"containerStatuses": [{"name": "image-0", "state": state}]}})
    }

    #[test]
    fn a_pod_runs_nothing_of_its_images_is_not_privileged_and_belongs_to_its_run() {
        let owner = Owner { namespace: "opensdn-probe-1", uid: "u" };
        let made = pod(&wanted(), owner, Duration::from_secs(120));
        let spec = &made["spec"];
        assert_eq!(spec["containers"][0]["command"], json!([PROGRAM]));
        assert_eq!(spec["containers"][0]["securityContext"], unprivileged());
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
        assert_eq!(
            (&spec["restartPolicy"], &spec["activeDeadlineSeconds"]),
            (&json!("Never"), &json!(180))
        );
        assert_eq!(spec["automountServiceAccountToken"], false);
        assert_eq!(spec.get("volumes"), None);
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(made["metadata"]["name"], "opensdn-probe-1-pull-7");
        assert!(wanted().is(&made) && !Wanted { number: 8, ..wanted() }.is(&made));
        let own = Wanted { namespace: "opensdn-probe-1".to_owned(), ..wanted() };
        assert_eq!(pod(&own, owner, Duration::ZERO)["metadata"]["ownerReferences"], json!([]));
    }

    #[test]
    fn an_image_is_there_as_soon_as_its_container_cannot_start() {
        for (reason, message) in
            [("RunContainerError", "no such file"), ("CreateContainerError", "")]
        {
            assert_eq!(said(Some(&waits(reason, message)), 0, None), Said::Settled(Pull::Done));
        }
        let ended = json!({"status": {"phase": "Failed", "containerStatuses": [
            {"name": "image-0", "state": {"terminated": {"reason": "StartError"}}}]}});
        assert_eq!(said(Some(&ended), 0, None), Said::Settled(Pull::Done));
    }

    #[test]
    fn what_the_first_try_said_is_the_reason_also_of_kubelets_that_do_not_repeat_it() {
        let why = "ErrImagePull: 401 Unauthorized".to_owned();
        let first = said(Some(&waits("ErrImagePull", "401 Unauthorized")), 0, None);
        assert_eq!(first, Said::Waits(Waits::AfterFailure(why.clone())));
        let before = Waits::AfterFailure(why.clone());
        let later = waits("ImagePullBackOff", "Back-off pulling image \"a\"");
        let expected = Said::Settled(Pull::Failed(why.clone()));
        assert_eq!(said(Some(&later), 0, Some(&before)), expected);
        assert_eq!(late(before, Duration::ZERO), Pull::Failed(why));
        let name = waits("InvalidImageName", "couldn't parse");
        let expected = "InvalidImageName: couldn't parse".to_owned();
        assert_eq!(said(Some(&name), 0, None), Said::Settled(Pull::Failed(expected)));
    }

    #[test]
    fn what_a_kubelet_has_not_said_is_not_known() {
        assert!(matches!(said(Some(&json!({})), 0, None), Said::Waits(Waits::Else(_))));
        let pulling = said(Some(&waits("ContainerCreating", "")), 0, None);
        let Said::Waits(waits) = pulling else { panic!("{pulling:?}") };
        let expected = Pull::Unknown("not known after 120 s: it is being pulled".to_owned());
        assert_eq!(late(waits, Duration::from_secs(120)), expected);
        let refused = json!({"status": {"phase": "Failed", "reason": "OutOfpods", "message": "Pod was rejected"}});
        let Said::Settled(Pull::Unknown(why)) = said(Some(&refused), 0, None) else { panic!() };
        assert_eq!(why, "its kubelet refused the pod: OutOfpods: Pod was rejected");
        assert!(matches!(said(None, 0, None), Said::Settled(Pull::Unknown(_))));
    }
}
