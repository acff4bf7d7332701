//! Which cluster is meant, for people: its context and the address of its API server.

use super::requests::Requests;
use crate::cli::Global;
use crate::exit::Failure;

/// A cluster.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The context of the kubeconfig, where there is one.
    pub(crate) context: Option<String>,
    /// The address of the API server.
    pub(crate) server: String,
}

impl Target {
    /// The cluster of flags and kubeconfig. No request is made yet.
    ///
    /// # Errors
    /// There is no kubeconfig, or it cannot be used.
    pub(crate) async fn of(global: &Global) -> Result<(Self, Requests), Failure> {
        let (client, server) = global.client_and_server().await?;
        let context = global.cluster.context_in_use();
        Ok((Self { context, server }, Requests::new(client)))
    }

    /// What a user calls it: the context, else the server.
    pub(crate) fn name(&self) -> &str {
        self.context.as_deref().unwrap_or(&self.server)
    }

    /// `context prod-eu (https://10.0.0.10:6443)`.
    pub(crate) fn described(&self) -> String {
        match &self.context {
            Some(context) => format!("context {context} ({})", self.server),
            None => format!("server {}", self.server),
        }
    }
}
