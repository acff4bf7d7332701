//! Load by [`oha`](https://github.com/hatoo/oha), a program that is not ours, as many independent callers
//! send it: so many requests a second, whether or not the ones before are answered. A latency counts from
//! when its request was due, so that a pause of the server, or of oha, is in every one that it held up.
//! Deliberately not here: full load, and a look at every answer (`wrk`).

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::{fs, io};

use serde::Deserialize;

use crate::wrk::Answers;

/// How `oha` is had.
pub const INSTALL: &str = "cargo install --locked oha";

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum OhaError {
    /// There is no `oha`.
    #[error("run oha; this would help: {INSTALL}")]
    Start(#[source] io::Error),
    /// The body could not be written.
    #[error("write the body that oha sends")]
    Body(#[source] io::Error),
    /// It ended without a result.
    #[error("read the result of oha: it said {said}")]
    Unreadable {
        /// What it printed.
        said: String,
    },
    /// Answers of another status, or connections that broke.
    #[error("see every answer with status 200: {0}")]
    Failed(String),
}

/// What is sent, and how often.
#[derive(Clone, Debug)]
pub struct OpenLoad<'l> {
    /// Where reviews are sent.
    pub url: &'l str,
    /// The body of every request.
    pub body: &'l str,
    /// Requests that are due each second.
    pub per_second: u32,
    /// For how long.
    pub seconds: u32,
    /// The core that oha runs on, where it is pinned.
    pub core: Option<u32>,
}

/// Enough that a request that is due finds one that is free.
const CONNECTIONS: u32 = 64;

impl OpenLoad<'_> {
    /// Sends it.
    ///
    /// # Errors
    /// One request, even one, fails or has another status than 200.
    pub fn run(&self) -> Result<Answers, OhaError> {
        let folder = tempfile::tempdir().map_err(OhaError::Body)?;
        let body = folder.path().join("body.json");
        fs::write(&body, self.body).map_err(OhaError::Body)?;
        let mut command = match self.core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string(), "oha"]);
                command
            }
            None => Command::new("oha"),
        };
        let output = command
            .args(["--no-tui", "--output-format=json", "--insecure", "--latency-correction"])
            .args(["-m", "POST", "-T", "application/json", "-D"])
            .arg(&body)
            .args(["-c", &CONNECTIONS.to_string(), "-q", &self.per_second.to_string()])
            .args(["-n", &self.per_second.saturating_mul(self.seconds).to_string()])
            .arg(self.url)
            .stdin(Stdio::null())
            .output()
            .map_err(OhaError::Start)?;
        read(&output.stdout).unwrap_or_else(|| {
            let bytes = [output.stdout, output.stderr].concat();
            Err(OhaError::Unreadable { said: String::from_utf8_lossy(&bytes).into_owned() })
        })
    }
}

/// What is read of oha's result; durations are seconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    summary: Summary,
    latency_percentiles: Percentiles,
    status_code_distribution: BTreeMap<String, u64>,
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    requests_per_sec: f64,
}

#[derive(Deserialize)]
struct Percentiles {
    p50: f64,
    p99: f64,
}

fn read(said: &[u8]) -> Option<Result<Answers, OhaError>> {
    let report: Report = serde_json::from_slice(said).ok()?;
    let statuses = &report.status_code_distribution;
    if !report.error_distribution.is_empty() || statuses.keys().any(|status| status != "200") {
        let what = format!("{statuses:?} {:?}", report.error_distribution);
        return Some(Err(OhaError::Failed(what)));
    }
    let Percentiles { p50, p99 } = report.latency_percentiles;
    let per_second = report.summary.requests_per_sec;
    Some(Ok(Answers { per_second, p50: p50 * 1e6, p99: p99 * 1e6 }))
}

#[cfg(test)]
mod tests {
    use super::{OhaError, read};

    fn report(statuses: &str, errors: &str) -> String {
        format!(
            r#"{{"summary": {{"requestsPerSec": 999.5, "successRate": 1.0}},
            "latencyPercentiles": {{"p10": 0.0001, "p50": 0.0002, "p99": 0.003}},
            "statusCodeDistribution": {statuses}, "errorDistribution": {errors}}}"#
        )
    }

    #[test]
    fn percentiles_are_read_in_microseconds() {
        let answers = read(report(r#"{"200": 5}"#, "{}").as_bytes()).unwrap().unwrap();
        assert!((answers.p50 - 200.0).abs() < 0.1 && (answers.p99 - 3_000.0).abs() < 0.1);
        assert!(read(b"oha: command line").is_none());
    }

    #[test]
    fn one_answer_of_another_status_or_a_broken_connection_fails_the_measurement() {
        for (statuses, errors) in
            [(r#"{"200": 5, "503": 1}"#, "{}"), (r#"{"200": 5}"#, r#"{"broken": 1}"#)]
        {
            let failed = read(report(statuses, errors).as_bytes()).unwrap();
            assert!(matches!(failed, Err(OhaError::Failed(_))), "{failed:?}");
        }
    }
}
