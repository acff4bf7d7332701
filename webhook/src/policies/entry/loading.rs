//! Loading the module of one AdmissionPolicy: from its source or, where that is gone or has another
//! content now, what was compiled of the pinned module before. Deliberately not here: when (`entry.rs`).

use std::sync::Arc;

use opensdn_admission_policy::{Problem, Source, bind};
use opensdn_crds::admission_policy::AdmissionPolicySpec;
use opensdn_policy_host::{Binding, Digest, Interest, Limits, Policy};

use super::super::loader::{Loader, Waiting};
use super::super::module_store::ModuleBytes;

/// What is to be loaded.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) attempt: u64,
    pub(super) spec: AdmissionPolicySpec,
    pub(super) source: Source,
    pub(super) pinned: Option<Digest>,
    pub(super) content: ModuleBytes,
    pub(super) limits: Limits,
    pub(super) waiting: Arc<Waiting>,
}

/// What came of loading.
pub(in crate::policies) struct Loading {
    pub(in crate::policies) name: String,
    pub(super) attempt: u64,
    pub(super) result: Result<Loaded, Failed>,
}

/// It can be put in force.
pub(super) struct Loaded {
    pub(super) binding: Binding,
    /// What is wrong with the source, where the module did not come from there.
    pub(super) despite: Option<Failed>,
}

/// It cannot, or not from its source.
pub(super) struct Failed {
    pub(super) problems: Vec<Problem>,
    /// What the module says that it is about, if it could be asked.
    pub(super) interests: Option<Vec<Interest>>,
    pub(super) retry: Retry,
}

/// Whether the same content may be loaded another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Useless,
    Later,
}

impl Job {
    pub(super) async fn run(self, loader: &Loader) -> Loading {
        let result = self.load(loader).await;
        Loading { name: self.name, attempt: self.attempt, result }
    }

    async fn load(&self, loader: &Loader) -> Result<Loaded, Failed> {
        let (policy, despite) = match self.load_source(loader).await {
            Ok(policy) => (policy, None),
            Err(failed) => match self.known(loader).await {
                Some(policy) => (policy, Some(failed)),
                None => return Err(failed),
            },
        };
        let interests = policy.metadata().interests.clone();
        match bind(&self.name, &self.spec, &self.source, policy, self.limits) {
            Ok(binding) => Ok(Loaded { binding, despite }),
            Err(problems) => {
                Err(Failed { problems, interests: Some(interests), retry: Retry::Useless })
            }
        }
    }

    async fn load_source(&self, loader: &Loader) -> Result<Policy, Failed> {
        let failed = |problem, retry| Failed { problems: vec![problem], interests: None, retry };
        // A source that comes back is another content.
        let bytes = self.content.clone().map_err(|problem| failed(problem, Retry::Useless))?;
        loader.load_showing(bytes, self.pinned, &self.waiting).await.map_err(|error| {
            let retry = if error.is_final() { Retry::Useless } else { Retry::Later };
            failed(error.into_problem(), retry)
        })
    }

    /// By its digest it is the very module that was asked for.
    async fn known(&self, loader: &Loader) -> Option<Policy> {
        loader.find(self.pinned?).await?.ok()
    }
}
