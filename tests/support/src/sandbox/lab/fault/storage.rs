//! Volumes that are full.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Api, Client};

use super::{Fault, FaultError};
use crate::sandbox::lab::volumes;
use crate::sandbox::lab::{Lab, LabError};

impl Lab {
    /// Fills a claim's volume to its last block, beside the data that is in it.
    ///
    /// # Errors
    /// When the claim has no volume of the lab, or its node does not run.
    pub async fn fill_volume(
        &self,
        client: &Client,
        namespace: &str,
        claim: &str,
    ) -> Result<Fault, FaultError> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
        let object = claims.get(claim).await.map_err(|source| LabError::ApiServer {
            what: format!("read claim {namespace}/{claim}"),
            source: Box::new(source),
        })?;
        let volume = object.spec.and_then(|spec| spec.volume_name).unwrap_or_default();
        let node = self.nodes().find(|node| volumes::image(node, &volume).exists());
        let Some(node) = node.filter(|_| !volume.is_empty()) else {
            return Err(FaultError::NoVolume { namespace: namespace.into(), claim: claim.into() });
        };
        let running = node.running()?;
        running.machine.run("fill a volume", &volumes::fill(&volume))?;
        Ok(Fault::new(format!("full volume of {namespace}/{claim}"), move || {
            Ok(running.machine.run("empty a volume", &volumes::empty(&volume)).map(drop)?)
        }))
    }
}
