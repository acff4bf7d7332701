//! Handshakes by TLS with members of services, as members have with each other. Deliberately not here: which certificates
//! there are.

use std::fs;

use opensdn_testing::sandbox::lab::Lab;
use opensdn_testing::{Failed, Outcome, lab_script};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Certificates, with their keys, and what is trusted.
pub(super) struct Handshakes {
    folder: TempDir,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    /// The word of its service.
    pub(super) service: &'static str,
    pub(super) host: String,
    /// Where each side shows a certificate.
    pub(super) port: u16,
}

/// How it went.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) with: Member,
    /// The certificate that was shown to it.
    pub(super) pair: String,
    pub(super) answer: Answer,
}

#[derive(Debug)]
pub(super) enum Answer {
    /// Each trusts the other; with the name of the CA of what the member has shown.
    Trusted(String),
    Distrusted(String),
    /// It was not to be reached, or ended meanwhile.
    Away,
}

impl Handshakes {
    /// With no certificate yet.
    pub(super) fn new() -> Result<Self, Failed> {
        Ok(Self { folder: TempDir::new()? })
    }

    /// Whom the side trusts that connects.
    pub(super) fn trust(&self, bundle: &str) -> Outcome {
        Ok(fs::write(self.folder.path().join("ca.crt"), bundle)?)
    }

    /// Notes a certificate under a name.
    pub(super) fn note(&self, pair: &str, certificate: &str, key: &str) -> Outcome {
        fs::write(self.folder.path().join(format!("{pair}.crt")), certificate)?;
        Ok(fs::write(self.folder.path().join(format!("{pair}.key")), key)?)
    }

    /// All of these, at the same time.
    pub(super) fn with(
        &self,
        lab: &Lab,
        all: Vec<(Member, String)>,
    ) -> Result<Vec<Handshake>, Failed> {
        let jobs: Vec<Value> = all
            .iter()
            .map(|(with, pair)| json!({"host": with.host, "port": with.port, "pair": pair}))
            .collect();
        let said = lab_script::answer(lab, "handshake.py", self.folder.path(), &json!(jobs))?;
        let said = said.as_array().cloned().unwrap_or_default();
        let handshake = |((with, pair), said): ((Member, String), Value)| {
            let text = |key: &str| said[key].as_str().map(str::to_owned);
            let answer = match (text("shown"), text("distrust")) {
                (Some(ca), _) => Answer::Trusted(ca),
                (None, Some(why)) => Answer::Distrusted(why),
                (None, None) => Answer::Away,
            };
            Handshake { with, pair, answer }
        };
        Ok(all.into_iter().zip(said).map(handshake).collect())
    }
}
