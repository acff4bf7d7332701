//! The real kubectl as tests use it: what it is given, and what it says. How it is found and run is
//! the sandbox's.

use std::process::Output;

use serde_json::Value;

use crate::sandbox::{Cluster, KubectlError};
use crate::{Failed, get};

/// What kubectl said.
pub struct Said {
    /// Whether it ended with 0.
    pub ok: bool,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { ok: output.status.success(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The answer of a command that must succeed.
    ///
    /// # Panics
    /// It failed.
    #[track_caller]
    pub fn success(&self) -> &str {
        assert!(self.ok, "kubectl failed: {}", self.err);
        &self.out
    }

    /// Refused, with all of these in the reason.
    ///
    /// # Panics
    /// It was not, or for another reason.
    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        assert!(!self.ok, "must be refused, but kubectl said: {}", self.out);
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is missing in: {}", self.err);
        }
    }

    /// Refused by an admission webhook, with all of these in the reason.
    ///
    /// # Panics
    /// It was not, or for another reason.
    #[track_caller]
    pub fn denied(&self, parts: &[&str]) {
        self.refused(&[parts, &["denied the request"]].concat());
    }
}

/// `kubectl <arguments>` as the administrator.
///
/// # Errors
/// kubectl cannot be run.
pub async fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Result<Said, KubectlError> {
    Ok(Said::of(&cluster.kubectl(arguments).await?))
}

/// `kubectl <arguments> -f -` with the object as input.
///
/// # Errors
/// kubectl cannot be run.
pub async fn send(
    cluster: &Cluster,
    arguments: &[&str],
    object: &Value,
) -> Result<Said, KubectlError> {
    let arguments = [arguments, &["-f", "-"]].concat();
    let input = object.to_string();
    Ok(Said::of(&cluster.kubectl_with_input(&arguments, &input).await?))
}

/// What `kubectl get -o json <arguments>` prints.
///
/// # Errors
/// There is no such object, kubectl cannot be run, or what it says is no JSON.
pub async fn read(cluster: &Cluster, arguments: &[&str]) -> Result<Value, Failed> {
    // What is refused, or answered late, kubectl tries again as its users know it, and says in its own words.
    if let Ok(Some(answer)) = get::get(cluster, arguments).await {
        return Ok(answer);
    }
    let arguments = [&["get", "-o", "json"], arguments].concat();
    let said = kubectl(cluster, &arguments).await?;
    if !said.ok {
        return Err(format!("kubectl failed: {}", said.err).into());
    }
    Ok(serde_json::from_str(&said.out)?)
}
