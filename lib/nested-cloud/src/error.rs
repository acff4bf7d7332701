//! Why a plan was not carried out, or a cluster not taken away, to the end.

use opensdn_config_api::apply as rows;
use opensdn_config_api::client;
use opensdn_config_api::lock;
use opensdn_config_api::ownership;
use opensdn_config_api::vrouter_config::ReadError;

use crate::snat::SnatError;

/// Which step failed. Those before it are done, and the same call continues.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Config API does not answer, or refuses.
    #[error(transparent)]
    Api(#[from] client::Error),
    /// The object with the rows cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record cannot be read.
    #[error(transparent)]
    Ownership(#[from] ownership::Error),
    /// The lock cannot be had.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// The rows were not written.
    #[error(transparent)]
    Rows(#[from] rows::Error),
    /// SNAT is not what it is to be.
    #[error(transparent)]
    Snat(#[from] SnatError),
    /// The network is gone.
    #[error("the network {0} of the nodes is not in the cloud")]
    NoNetwork(String),
    /// A part of the cloud was not known when the plan was made.
    #[error("the plan was made without having read {0}: plan again")]
    Unread(&'static str),
}

impl Error {
    /// What the Config API or Keystone said, where one of them is the reason.
    #[must_use]
    pub fn of_api(&self) -> Option<&client::Error> {
        match self {
            Self::Api(error)
            | Self::Read(ReadError::Api(error))
            | Self::Lock(lock::Error::Api(error))
            | Self::Snat(SnatError::Api(error))
            | Self::Rows(
                rows::Error::Api(error)
                | rows::Error::Read(ReadError::Api(error))
                | rows::Error::Lock(lock::Error::Api(error)),
            ) => Some(error),
            // That the last write was refused says more than that none was there afterwards.
            Self::Rows(rows::Error::Fought(fought)) => fought.source.as_ref(),
            _ => None,
        }
    }

    /// Whether it is about who asks: Keystone gives no token, or the Config API wants another one.
    #[must_use]
    pub fn is_of_login(&self) -> bool {
        let Some(error) = self.of_api() else { return false };
        let is_unauthorized = matches!(error.refusal(), Some(client::Refusal::Unauthorized { .. }));
        matches!(error, client::Error::Login(_)) || is_unauthorized
    }
}
