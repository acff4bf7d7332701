//! From the bytes of a module to a policy: the program's engine and its cache of compiled policies.

use opensdn_policy_host::{Cache, Digest, Engine, LoadError, Policy};

/// What loads policies. The program owns both, as it may run policies for other reasons too.
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    /// What policies run on.
    pub engine: &'a Engine,
    /// Where compiled policies are kept, if anywhere.
    pub cache: Option<&'a Cache>,
}

impl Loader<'_> {
    pub(crate) async fn load(
        self,
        bytes: &[u8],
        pinned: Option<Digest>,
    ) -> Result<Policy, LoadError> {
        Policy::load(self.engine, bytes, pinned, self.cache).await
    }
}
