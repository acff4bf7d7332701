//! What the API server would refuse of an installation: every object is applied, and nothing of it is stored. Webhooks,
//! quotas, policies of the cluster and the rights that roles may grant are asked so.

use kube::Client;
use opensdn_deploy::Values;

use crate::checks::world::Applied;
use crate::install::plan::{Action, Adopt};
use crate::install::requests::Requests;
use crate::install::survey::{Survey, Takeover};

/// The objects of these values, else of the default ones, in this namespace. What belongs to others is not tried: K005 says
/// whose it is.
pub(crate) async fn applied(
    client: &Client,
    namespace: &str,
    values: Option<&Values>,
) -> Result<Applied, String> {
    let default = || Values { namespace: namespace.to_owned(), ..Values::default() };
    let values = values.cloned().unwrap_or_else(default);
    let takeover = Takeover { adopt: Adopt::No, force: Vec::new() };
    let requests = Requests::new(client.clone());
    let survey = Survey::of(&requests, values, None, &takeover).await.map_err(|failure| {
        let causes = std::iter::once(failure.message).chain(failure.causes);
        causes.collect::<Vec<_>>().join(": ")
    })?;
    let refused = survey.plan.iter().filter_map(|one| match &one.action {
        Action::Refused { reason } | Action::Ending { reason } => {
            Some(format!("{}: {reason}", one.key))
        }
        _ => None,
    });
    let refused = refused.collect();
    Ok(Applied { objects: survey.plan.len(), refused, untried: survey.untried() })
}
