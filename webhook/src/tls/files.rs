//! An identity kept in files, such as a mounted Secret. The files' *content* is polled: a mounted
//! Secret changes by the swap of a symbolic link, which a watch on the files does not see (MN-02).

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{Error, Identity, Tls};

/// How often two files may be found changed between two readings before they are taken as they
/// are; the pair is checked anyway.
const ATTEMPTS: usize = 5;
/// Between two attempts at a file that is not there.
const PAUSE: Duration = Duration::from_millis(20);

/// Where chain, key and client CA are.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate chain, leaf first.
    pub chain: PathBuf,
    /// The leaf's key.
    pub key: PathBuf,
    /// The CA of callers, if they have to show a certificate.
    pub client_ca: Option<PathBuf>,
}

/// What the files hold.
pub struct Content {
    chain: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Content {
    /// Parses and pairs chain and key.
    pub fn identity(&self) -> Result<Identity, Error> {
        Identity::from_pem(&self.chain, &self.key)
    }

    /// The CA of callers, in PEM.
    pub fn client_ca(&self) -> Option<&[u8]> {
        self.client_ca.as_deref()
    }

    /// What content is compared by, so that the key is not kept in memory for that.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [&self.chain, &self.key, self.client_ca.as_ref().unwrap_or(&Vec::new())] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
}

impl Files {
    /// Reads all files, more than once where they change meanwhile: a swap between chain and key
    /// shows in the chain being another one afterwards, a swap in the middle of the path in a file
    /// that seems not to be there.
    pub async fn read(&self) -> Result<Content, Error> {
        let mut content = self.read_once().await;
        for _ in 1..ATTEMPTS {
            match &content {
                Ok(content) if content.chain == read(&self.chain).await.unwrap_or_default() => {
                    break;
                }
                Ok(_) => {}
                Err(_) => sleep(PAUSE).await,
            }
            content = self.read_once().await;
        }
        content
    }

    async fn read_once(&self) -> Result<Content, Error> {
        let chain = read(&self.chain).await?;
        let key = read(&self.key).await?;
        let client_ca = match &self.client_ca {
            Some(path) => Some(read(path).await?),
            None => None,
        };
        Ok(Content { chain, key, client_ca })
    }

    /// Installs what the files hold whenever that changes, for ever. What cannot be used is
    /// reported once and left alone until it changes again.
    pub async fn watch(self, tls: Tls, mut seen: [u8; 32], every: Duration) {
        let mut tick = interval(every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unreadable = false;
        loop {
            tick.tick().await;
            let content = match self.read().await {
                Ok(content) => content,
                Err(error) => {
                    // Reported once, not every second.
                    if !std::mem::replace(&mut unreadable, true) {
                        tls.refused(&error);
                    }
                    continue;
                }
            };
            unreadable = false;
            let digest = content.digest();
            if digest == seen {
                continue;
            }
            seen = digest;
            let installed = content.identity().and_then(|i| tls.install(i, content.client_ca()));
            if let Err(error) = installed {
                tls.refused(&error);
            }
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let read = tokio::fs::read(path).await;
    read.map_err(|source| Error::Read { path: path.to_owned(), source })
}
