//! What runs in the cluster. The API server has to answer; our programs may be absent, or not ours
//! to see, which is said instead.

use std::io::{self, Write};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use opensdn_deploy::names;
use opensdn_upgrade::images;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::Global;
use crate::clients::{unanswered, why};
use crate::exit::Failure;
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::snapshot::places::Places;
use crate::ui::{Ui, one_line};

/// The versions of Kubernetes that this release is tested with.
pub(super) const SUPPORTED: std::ops::RangeInclusive<u32> = 33..=36;
/// A version is not worth waiting long for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What runs in the cluster.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    /// Version of the API server.
    kubernetes: String,
    /// Whether this release is tested with it.
    supported: bool,
    /// The webhook.
    webhook: Program,
    /// The operator.
    operator: Program,
    /// Which of them are of another version than this program, as far as the tags of their images say.
    skew: Vec<Skew>,
    /// What is known of that.
    skew_state: SkewState,
}

/// Whether what is installed is of the version of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum SkewState {
    /// Whatever is installed is.
    Ok,
    /// One is not.
    Differs,
    /// An image says no version, or could not be asked for.
    Unknown,
    /// Nothing is installed.
    NotInstalled,
}

/// A program of another version than this one.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Skew {
    /// `webhook` or `operator`.
    program: &'static str,
    /// The tag of its image.
    version: String,
}

/// One of our programs in the cluster.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "state")]
enum Program {
    /// It is there.
    Installed {
        /// Its image, with tag or digest.
        image: String,
        /// Replicas that are ready.
        ready: i32,
        /// Replicas that there should be.
        wanted: i32,
    },
    /// There is none in the namespace.
    Absent {
        /// The namespace.
        namespace: String,
    },
    /// It could not be asked for.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// Asks the cluster of the flags and kubeconfig.
pub(super) fn ask(global: &Global, namespace: &str, ui: &mut Ui) -> Result<Server, Failure> {
    let mut global = global.clone();
    global.cluster.request_timeout = global.cluster.request_timeout.or(Some(REQUEST_TIMEOUT));
    Runtime::start(&global)?.block_on(async {
        let (client, server) = global.client_and_server().await?;
        ui.detail(&format!("asking {server}"));
        let version = client
            .apiserver_version()
            .await
            .map_err(|error| unanswered(&format!("ask {server} for its version"), &error))?;
        // Some providers write 1.33+.
        let minor = version.minor.trim_end_matches('+').parse().ok();
        let places = Places::of(&Asker::new(client.clone()), namespace).await;
        let (webhook, operator) = futures::join!(
            program(client.clone(), &places.webhook, names::webhook::NAME),
            program(client, &places.operator, names::operator::NAME),
        );
        Ok(Server {
            kubernetes: version.git_version,
            supported: minor.is_some_and(|minor| SUPPORTED.contains(&minor)),
            skew: skew([("webhook", &webhook), ("operator", &operator)]),
            skew_state: skew_state([&webhook, &operator]),
            webhook,
            operator,
        })
    })
}

/// Those of another version. A digest says none, and the tag of an image that was built elsewhere may be any word.
fn skew(programs: [(&'static str, &Program); 2]) -> Vec<Skew> {
    let of = |(program, installed): (&'static str, &Program)| {
        let version =
            installed.version().filter(|version| *version != env!("CARGO_PKG_VERSION"))?;
        Some(Skew { program, version: version.to_owned() })
    };
    programs.into_iter().filter_map(of).collect()
}

/// What is known of both. One that differs is known, whatever the other is.
fn skew_state(programs: [&Program; 2]) -> SkewState {
    let states = programs.map(|program| match (program, program.version()) {
        (Program::Absent { .. }, _) => SkewState::NotInstalled,
        (_, Some(env!("CARGO_PKG_VERSION"))) => SkewState::Ok,
        (_, Some(_)) => SkewState::Differs,
        (_, None) => SkewState::Unknown,
    });
    let first = |state: &SkewState| states.contains(state);
    let order = [SkewState::Differs, SkewState::Unknown, SkewState::Ok];
    order.into_iter().find(first).unwrap_or(SkewState::NotInstalled)
}

/// The first three numbers of a version; nothing where it is none.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

async fn program(client: kube::Client, namespace: &str, name: &str) -> Program {
    let deployments: Api<Deployment> = Api::namespaced(client, namespace);
    match deployments.get_opt(name).await {
        Ok(None) => Program::Absent { namespace: namespace.to_owned() },
        Ok(Some(deployment)) => {
            let spec = deployment.spec.unwrap_or_default();
            let pod = spec.template.spec.unwrap_or_default();
            let image = pod.containers.into_iter().next().and_then(|container| container.image);
            Program::Installed {
                image: image.unwrap_or_default(),
                ready: deployment.status.and_then(|status| status.ready_replicas).unwrap_or(0),
                wanted: spec.replicas.unwrap_or(1),
            }
        }
        Err(error) => Program::Unknown { reason: why(&error) },
    }
}

impl Server {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (oldest, newest) = (SUPPORTED.start(), SUPPORTED.end());
        let supported = if self.supported { "supported" } else { "not supported" };
        writeln!(
            out,
            "kubernetes  {} ({supported}: 1.{oldest} - 1.{newest})",
            one_line(&self.kubernetes)
        )?;
        self.webhook.write("webhook", out)?;
        self.operator.write("operator", out)?;
        match self.skew_state {
            SkewState::Ok => writeln!(out, "skew        ok"),
            SkewState::Unknown => {
                writeln!(out, "skew        unknown: not every image says its version")
            }
            SkewState::Differs | SkewState::NotInstalled => Ok(()),
        }?;
        self.skew.iter().try_for_each(|one| one.write(out))
    }
}

impl Program {
    /// The version that the tag of its image says.
    fn version(&self) -> Option<&str> {
        let Self::Installed { image, .. } = self else { return None };
        let tag = images::tag(image)?;
        let tag = tag.strip_prefix('v').unwrap_or(tag);
        numbers(tag).is_some().then_some(tag)
    }

    fn write(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Installed { image, ready, wanted } => {
                writeln!(out, "{name:<10}  {} ({ready} of {wanted} ready)", one_line(image))
            }
            Self::Absent { namespace } => {
                writeln!(out, "{name:<10}  not installed in the namespace {namespace}")
            }
            Self::Unknown { reason } => writeln!(out, "{name:<10}  unknown: {}", one_line(reason)),
        }
    }
}

impl Skew {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { program, version } = self;
        let own = env!("CARGO_PKG_VERSION");
        writeln!(
            out,
            "skew        the {program} is of {}, this program of {own}:",
            one_line(version)
        )?;
        match numbers(version) > numbers(own) {
            true => writeln!(out, "            take the plugin of its release"),
            false => writeln!(out, "            kubectl opensdn install brings it to {own}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_version_is_named_and_one_without_a_version_is_not() {
        let of = |image: &str| Program::Installed { image: image.to_owned(), ready: 1, wanted: 1 };
        let own = of(concat!("registry:5000/opensdn-webhook:", env!("CARGO_PKG_VERSION")));
        let other = of("registry:5000/opensdn-operator:9.8.7@sha256:00");
        let found = skew([("webhook", &own), ("operator", &other)]);
        assert_eq!(found, [Skew { program: "operator", version: "9.8.7".to_owned() }]);
        let mut out = Vec::new();
        found[0].write(&mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("take the plugin of its release"));
        for image in ["registry:5000/opensdn-operator", "o@sha256:00", "o:latest", "o:main"] {
            assert_eq!(skew([("webhook", &own), ("operator", &of(image))]), [], "{image}");
        }
    }

    #[test]
    fn skew_is_ok_only_where_every_version_is_known_and_the_same() {
        let of = |image: &str| Program::Installed { image: image.to_owned(), ready: 1, wanted: 1 };
        let own = of(concat!("o:v", env!("CARGO_PKG_VERSION")));
        let absent = Program::Absent { namespace: "n".to_owned() };
        let unknown = Program::Unknown { reason: "forbidden".to_owned() };
        for (programs, expected) in [
            ([&own, &own], SkewState::Ok),
            ([&own, &absent], SkewState::Ok),
            ([&own, &of("o:9.8.7")], SkewState::Differs),
            ([&unknown, &of("o:9.8.7")], SkewState::Differs),
            ([&own, &of("o@sha256:00")], SkewState::Unknown),
            ([&own, &unknown], SkewState::Unknown),
            ([&absent, &absent], SkewState::NotInstalled),
        ] {
            assert_eq!(skew_state(programs), expected, "{programs:?}");
        }
    }
}
