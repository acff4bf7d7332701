//! Which pods an upgrade replaces, and for what.

use std::collections::BTreeSet;

use opensdn_crds::upgrade::{ImageChange, Step};
use opensdn_upgrade::health::{Pod, Service};
use opensdn_upgrade::images::release;
use opensdn_upgrade::plan::MOST_PODS;
use schemars::JsonSchema;
use serde::Serialize;

use super::table::Row;

/// As many containers are named in a reason.
const MOST_CONTAINERS: usize = 3;

/// A pod that is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct PlannedRestart {
    /// Its name. That of one of a DaemonSet is another one afterwards.
    pod: String,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// What it is replaced for: the containers whose image is another one, with their releases or tags.
    reason: String,
}

impl PlannedRestart {
    pub(super) fn row(&self) -> Row {
        let node = self.node.clone().unwrap_or_else(|| "-".to_owned());
        Row { cells: vec![self.pod.clone(), node], note: self.reason.clone(), ..Row::default() }
    }
}

/// Those of a step. One that has all of the new images is none.
pub(super) fn restarts(step: &Step, services: &[Service]) -> Vec<PlannedRestart> {
    let service = services.iter().find(|one| one.id == step.id);
    let pods = service.into_iter().flat_map(|one| &one.pods);
    pods.filter_map(|pod| restart(pod, &step.images)).take(MOST_PODS).collect()
}

fn restart(pod: &Pod, images: &[ImageChange]) -> Option<PlannedRestart> {
    // Of a container that it lacks nothing is known: its workload is replaced all the same.
    let is_other =
        |one: &&ImageChange| pod.images.get(&one.container).is_none_or(|image| *image != one.to);
    let others: Vec<&ImageChange> = images.iter().filter(is_other).collect();
    let now = |one: &&ImageChange| pod.images.get(&one.container).unwrap_or(&one.from).clone();
    let now: Vec<String> = others.iter().map(now).collect();
    let from = release(now.iter().map(String::as_str));
    let to = release(others.iter().map(|one| one.to.as_str()));
    let containers: BTreeSet<&str> = others.iter().map(|one| one.container.as_str()).collect();
    let named: Vec<&str> = containers.iter().copied().take(MOST_CONTAINERS).collect();
    let more = match containers.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = if containers.len() == 1 { "image" } else { "images" };
    let reason = format!("{word} of {}{more}: {from} -> {to}", named.join(", "));
    let (pod, node) = (pod.name.clone(), pod.node.clone());
    (!others.is_empty()).then_some(PlannedRestart { pod, node, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(container: &str, to: &str) -> ImageChange {
        let image = |tag: &str| format!("x/contrail-{container}:{tag}");
        ImageChange { container: container.to_owned(), from: image("R24.1"), to: image(to) }
    }

    fn pod(name: &str, images: &[(&str, &str)]) -> Pod {
        let image = |&(container, tag): &(&str, &str)| {
            (container.to_owned(), format!("x/contrail-{container}:{tag}"))
        };
        let images = images.iter().map(image).collect();
        Pod { name: name.to_owned(), node: Some("m1".to_owned()), images, ..Pod::default() }
    }

    fn reasons(pods: Vec<Pod>, images: Vec<ImageChange>) -> Vec<String> {
        let step = Step::new("Config/a".to_owned(), "config".to_owned(), images);
        let service = Service { id: step.id.clone(), pods, ..Service::default() };
        let all = restarts(&step, &[service]).into_iter();
        all.map(|one| format!("{} {}", one.pod, one.reason)).collect()
    }

    #[test]
    fn each_pod_that_is_replaced_has_its_reason_and_one_with_the_new_images_is_not_replaced() {
        let old = [("api", "R24.1"), ("schema", "R24.1")];
        let pods = vec![
            pod("config-0", &old),
            pod("config-1", &[("api", "R25.1"), ("schema", "R24.1")]),
            pod("config-2", &[("api", "R25.1"), ("schema", "R25.1")]),
        ];
        let images = vec![change("api", "R25.1"), change("schema", "R25.1")];
        let expected = [
            "config-0 images of api, schema: R24.1 -> R25.1",
            "config-1 image of schema: R24.1 -> R25.1",
        ];
        assert_eq!(reasons(pods, images), expected);
    }

    #[test]
    fn of_many_containers_some_are_named_and_of_many_pods_some() {
        let images = ["a", "b", "c", "d", "e"].map(|name| change(name, "R25.1")).to_vec();
        let pods = vec![pod("config-0", &[]); MOST_PODS + 1];
        let all = reasons(pods, images);
        assert_eq!(all.len(), MOST_PODS);
        assert_eq!(all[0], "config-0 images of a, b, c and 2 more: R24.1 -> R25.1");
    }
}
