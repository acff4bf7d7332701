//! Which images a user wants: a release, images of single containers, and what he passes over.

use clap::Args;
use opensdn_crds::upgrade::{Image, UpgradeSpec};

use crate::catalogue::upgrade::code;
use crate::clients::AsksCluster;
use crate::commands::status::component;
use crate::completion::objects::{completer, words};
use crate::completion::releases;

/// The longest tag of an image.
const MOST_VERSION: usize = 128;
/// As many vrouters at a time an Upgrade takes.
const MOST_AT_ONCE: i64 = 1000;

/// What `plan` and `apply` are given.
#[derive(Debug, Args)]
pub(super) struct TargetFlags {
    /// The release, such as R25.1: the tag that OpenSDN's own images get.
    #[arg(value_name = "VERSION", value_parser = version, add = words(releases), required_unless_present = "image")]
    pub(super) version: Option<String>,
    /// The Manager [default: the only one of the namespace].
    #[arg(long, value_name = "NAME", add = completer("/apis/tf.tungsten.io/v1alpha1/managers"))]
    pub(super) manager: Option<String>,
    /// Where OpenSDN's own images come from then [default: from where they come now].
    #[arg(long, value_name = "REGISTRY")]
    registry: Option<String>,
    /// The image of a container, for all services that have it or for those of a kind (repeatable); it wins over the release.
    #[arg(long, value_name = "[KIND/]CONTAINER=IMAGE", value_parser = image)]
    image: Vec<Image>,
    /// How many vrouters are replaced at a time, after the first has been well for the soak time [default: 1].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..=MOST_AT_ONCE))]
    vrouters_at_once: Option<i64>,
    /// Replace a vrouter only when its node is drained, by kubectl drain and an annotation; the status says how.
    #[arg(long)]
    wait_for_drain: bool,
    /// Do not have nodes pull the new images before anything is changed.
    #[arg(long)]
    no_pre_pull: bool,
    /// Pass over what refuses it, by codes; the plan says which of them can be.
    #[arg(long, value_name = "CODE,...", value_delimiter = ',', value_parser = code)]
    force: Vec<String>,
    #[command(flatten)]
    cluster: AsksCluster,
}

impl TargetFlags {
    /// As the spec of an Upgrade of this Manager.
    pub(super) fn spec(&self, manager: &str) -> UpgradeSpec {
        UpgradeSpec {
            manager: manager.to_owned(),
            version: self.version.clone(),
            registry: self.registry.clone(),
            images: Some(self.image.clone()).filter(|images| !images.is_empty()),
            vrouters_at_once: self.vrouters_at_once,
            wait_for_drain: self.wait_for_drain.then_some(true),
            pre_pull: self.no_pre_pull.then_some(false),
            force: Some(self.force.clone()).filter(|force| !force.is_empty()),
            ..UpgradeSpec::default()
        }
    }

    /// The words by which the same is given again.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.version.iter().cloned().collect();
        let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(manager) = &self.manager {
            flag("--manager", manager.clone());
        }
        if let Some(registry) = &self.registry {
            flag("--registry", registry.clone());
        }
        for Image { kind, container, image } in &self.image {
            let kind = kind.as_ref().map(|kind| format!("{kind}/")).unwrap_or_default();
            flag("--image", format!("{kind}{container}={image}"));
        }
        if let Some(number) = self.vrouters_at_once {
            flag("--vrouters-at-once", number.to_string());
        }
        if !self.force.is_empty() {
            flag("--force", self.force.join(","));
        }
        if self.wait_for_drain {
            words.push("--wait-for-drain".to_owned());
        }
        if self.no_pre_pull {
            words.push("--no-pre-pull".to_owned());
        }
        words
    }
}

/// A tag of images.
pub(crate) fn version(text: &str) -> Result<String, String> {
    let is_first = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_of_tag = |letter: char| is_first(letter) || "-.".contains(letter);
    let is_tag = text.starts_with(is_first) && text.chars().all(is_of_tag);
    if is_tag && text.len() <= MOST_VERSION {
        return Ok(text.to_owned());
    }
    Err("must be a tag of images, such as R25.1".to_owned())
}

/// `Redis/redis=registry/redis:7.2`, or without the kind.
fn image(text: &str) -> Result<Image, String> {
    let parts = text.split_once('=').filter(|(left, image)| !left.is_empty() && !image.is_empty());
    let Some((left, image)) = parts else {
        return Err("must be CONTAINER=IMAGE or KIND/CONTAINER=IMAGE".to_owned());
    };
    let (kind, container) = match left.split_once('/') {
        Some((kind, container)) => (Some(component(kind)?.kind.to_owned()), container),
        None => (None, left),
    };
    if container.is_empty() {
        return Err("the container has no name".to_owned());
    }
    Ok(Image { kind, container: container.to_owned(), image: image.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_for_a_container_of_all_kinds_or_of_one_in_any_letters() {
        let read = |text: &str| image(text).map(|one| (one.kind, one.container, one.image));
        let all = |kind: Option<&str>, container: &str, image: &str| {
            Ok((kind.map(str::to_owned), container.to_owned(), image.to_owned()))
        };
        assert_eq!(read("api=x:1"), all(None, "api", "x:1"));
        assert_eq!(
            read("redis/redis=a:5/b@sha256:1"),
            all(Some("Redis"), "redis", "a:5/b@sha256:1")
        );
        for text in ["api", "=x", "api=", "nothing/api=x", "redis/=x"] {
            assert!(image(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_version_is_a_tag() {
        assert_eq!(version("R25.1").as_deref(), Ok("R25.1"));
        for text in ["", ".1", "-1", "R25.1:x", "R 1", &"1".repeat(129)] {
            assert!(version(text).is_err(), "{text}");
        }
    }
}
