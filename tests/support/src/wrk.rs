//! Load by `wrk`, a program that is not ours: a fixed body, every answer looked at. wrk is closed
//! loop: a connection sends its next request when it has the answer to the last, so at full load
//! its percentiles are those of a queue as long as there are connections. Deliberately not here:
//! what is sent, and what the numbers mean.

use std::{
    fs, io,
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// How `wrk` is had.
pub const INSTALL: &str = "sudo apt-get install -y wrk";

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum WrkError {
    /// There is no `wrk`.
    #[error("run wrk; this would help: {INSTALL}")]
    Start(#[source] io::Error),
    /// The script or the body could not be written.
    #[error("write the script of wrk")]
    Script(#[source] io::Error),
    /// It ended without a result.
    #[error("read the result of wrk: it said {said}")]
    Unreadable {
        /// What it printed.
        said: String,
    },
    /// Answers that do not allow, or connections that broke.
    #[error("see every answer allowed: {bad} of {all} are not, the first is {first}")]
    Refused {
        /// How many answers or connections.
        bad: u64,
        /// How many answers there were.
        all: u64,
        /// One of them.
        first: String,
    },
}

/// What is sent, and how much at once.
#[derive(Clone, Debug)]
pub struct Load<'l> {
    /// Where reviews are sent.
    pub url: &'l str,
    /// The body of every request.
    pub body: &'l str,
    /// Connections, kept open.
    pub connections: u32,
    /// For how long.
    pub seconds: u32,
    /// The core that wrk runs on, where it is pinned.
    pub core: Option<u32>,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// Answers per second.
    pub per_second: f64,
    /// The median of their latencies, in microseconds.
    pub p50: f64,
    /// What 99 % of them did not exceed, in microseconds.
    pub p99: f64,
}

impl Load<'_> {
    /// Sends it.
    ///
    /// # Errors
    /// One answer, even one, does not allow its request.
    pub fn run(&self) -> Result<Answers, WrkError> {
        let folder = tempfile::tempdir().map_err(WrkError::Script)?;
        let script = self.write_script(&folder).map_err(WrkError::Script)?;
        let mut command = match self.core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string(), "wrk"]);
                command
            }
            None => Command::new("wrk"),
        };
        let output = command
            .args(["--threads=1", "--timeout=5s", "--script", &script])
            .arg(format!("--connections={}", self.connections))
            .arg(format!("--duration={}s", self.seconds))
            .arg(self.url)
            .stdin(Stdio::null())
            .output()
            .map_err(WrkError::Start)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        read(&said).unwrap_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            Err(WrkError::Unreadable { said: format!("{said}{error}") })
        })
    }

    fn write_script(&self, folder: &TempDir) -> io::Result<String> {
        let body = folder.path().join("body.json");
        fs::write(&body, self.body)?;
        let script = folder.path().join("review.lua");
        fs::write(&script, format!("local path = {body:?}\n{SCRIPT}"))?;
        Ok(script.display().to_string())
    }
}

/// Checks every answer. `setup` and `done` run in one Lua state, the rest in the thread's.
const SCRIPT: &str = r#"
local file = io.open(path, "rb")
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
file:close()

local threads = {}
function setup(thread) table.insert(threads, thread) end

function init(args) bad = 0; first = "" end

function response(status, headers, body)
  if status ~= 200 or not string.find(body, '"allowed":true', 1, true) then
    bad = bad + 1
    if bad == 1 then first = status .. " " .. string.sub(body, 1, 600) end
  end
end

function done(summary, latency, requests)
  local wrong, shown = 0, ""
  for _, thread in ipairs(threads) do
    wrong = wrong + thread:get("bad")
    shown = shown .. thread:get("first")
  end
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  if broken > 0 then shown = broken .. " connections broke or timed out " .. shown end
  io.write(string.format("\nRESULT %d %d %d %d %d %s\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), wrong + broken, shown))
end
"#;

/// The result among what wrk printed; none if it is not there.
fn read(said: &str) -> Option<Result<Answers, WrkError>> {
    let result = said.lines().find_map(|line| line.strip_prefix("RESULT "))?;
    let mut words = result.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u32>().ok();
    let (all, microseconds) = (number()?, number()?);
    let (p50, p99, bad) = (number()?, number()?, number()?);
    if bad > 0 || all == 0 {
        let first = words.next().unwrap_or_default().to_owned();
        return Some(Err(WrkError::Refused { bad: bad.into(), all: all.into(), first }));
    }
    let per_second = f64::from(all) * 1e6 / f64::from(microseconds);
    Some(Ok(Answers { per_second, p50: p50.into(), p99: p99.into() }))
}

#[cfg(test)]
mod tests {
    use super::{WrkError, read};

    #[test]
    fn a_result_is_read_from_among_what_wrk_prints() {
        let answers = read("Running 5s\n\nRESULT 100000 5000000 300 900 0 \n").unwrap().unwrap();
        assert!((answers.per_second - 20_000.0).abs() < 0.1);
        assert!((answers.p50 - 300.0).abs() < 0.1 && (answers.p99 - 900.0).abs() < 0.1);
        assert!(read("unable to connect").is_none());
    }

    #[test]
    fn one_answer_that_does_not_allow_fails_the_measurement() {
        let error = read("RESULT 10 5000000 300 900 1 200 {\"allowed\":false}").unwrap();
        let Err(WrkError::Refused { bad, all, first }) = error else { panic!("{error:?}") };
        assert_eq!((bad, all, first.as_str()), (1, 10, "200 {\"allowed\":false}"));
        assert!(matches!(read("RESULT 0 5000000 0 0 0 "), Some(Err(_))), "nothing is no answer");
    }
}
