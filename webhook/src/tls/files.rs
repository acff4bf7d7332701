//! An identity and a client CA kept in files, such as a mounted Secret. The files' *content* is
//! polled: a mounted Secret changes by the swap of a symbolic link, which a watch on the files does
//! not see. Deliberately not here: certificates of our own CA (`certificates`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{MissedTickBehavior, interval, sleep};

use opensdn_pki::Identity;

use super::{Error, Tls};

/// How often two files may be found changed between two readings before they are taken as they
/// are; the pair is checked anyway.
const ATTEMPTS: usize = 5;
/// Between two attempts at a file that is not there.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Where chain and key are.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate chain, leaf first.
    pub chain: PathBuf,
    /// The leaf's key.
    pub key: PathBuf,
}

/// What the files hold.
pub struct Content {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Content {
    /// Parses and pairs chain and key.
    pub fn identity(&self) -> Result<Identity, Error> {
        Ok(Identity::from_pem(&self.chain, &self.key)?)
    }

    /// What content is compared by, so that the key is not kept in memory for that.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update((self.chain.len() as u64).to_be_bytes());
        hash.update(&self.chain);
        hash.update(&self.key);
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
                Err(_) => sleep(RETRY_DELAY).await,
            }
            content = self.read_once().await;
        }
        content
    }

    async fn read_once(&self) -> Result<Content, Error> {
        let chain = read(&self.chain).await?;
        let key = read(&self.key).await?;
        Ok(Content { chain, key })
    }

    /// Installs what the files hold whenever that changes, until dropped. What cannot be used is
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
                        tls.rejected(&error);
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
            let installed = content.identity().and_then(|identity| tls.install(identity));
            if let Err(error) = installed {
                tls.rejected(&error);
            }
        }
    }
}

/// Trusts what a client CA's file holds whenever that changes, until dropped. `seen` is what is trusted
/// already.
pub async fn watch_client_ca(path: PathBuf, tls: Tls, mut seen: Vec<u8>, every: Duration) {
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        // A file that cannot be read now is kept as it was; a missing CA must not let any client in.
        let Ok(pem) = read(&path).await else { continue };
        if pem == seen {
            continue;
        }
        if let Err(error) = tls.trust(&pem) {
            tls.rejected(&error);
        }
        seen = pem;
    }
}

/// Reads one file.
pub async fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let read = tokio::fs::read(path).await;
    read.map_err(|source| Error::Read { path: path.to_owned(), source })
}
