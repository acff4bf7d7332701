//! Percentiles, a table for people and JSON for machines: what every benchmark prints.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Serialize;

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit: `µs`, `1/s`, `MiB` …
    pub unit: &'static str,
    /// What was aimed at, in words; empty where nothing was.
    pub aim: String,
}

impl Row {
    /// A number without an aim.
    #[must_use]
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, aim: String::new() }
    }

    /// What was aimed at.
    #[must_use]
    pub fn aim(mut self, aim: impl Into<String>) -> Self {
        self.aim = aim.into();
        self
    }
}

/// Durations of many runs of the same, sorted.
#[derive(Clone, Debug)]
pub struct Sample {
    sorted: Vec<Duration>,
}

impl Sample {
    /// Sorts the durations.
    #[must_use]
    pub fn new(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        Self { sorted: durations }
    }

    /// Times `run` this many times, after a tenth of that to warm up.
    pub fn of(times: usize, mut run: impl FnMut()) -> Self {
        for _ in 0..times / 10 {
            run();
        }
        let timed = (0..times).map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        });
        Self::new(timed.collect())
    }

    /// The duration that this share of the runs (0 to 1) did not exceed, in microseconds.
    #[must_use]
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a position in a list that fits into memory"
        )]
        let position = (last as f64 * share.clamp(0.0, 1.0)).round() as usize;
        self.sorted.get(position).map_or(0.0, |duration| duration.as_secs_f64() * 1e6)
    }
}

/// Prints the rows as a table and writes them to `target/bench/<name>.json`.
///
/// # Errors
/// The file cannot be written.
pub fn report(name: &str, rows: &[Row]) -> io::Result<PathBuf> {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut table = format!("\n{name}\n");
    for row in rows {
        let Row { name, value, unit, aim } = row;
        let aim = if aim.is_empty() { String::new() } else { format!("   aim: {aim}") };
        table.push_str(&format!("  {name:<width$}  {value:>12.1} {unit:<4}{aim}\n"));
    }
    #[allow(clippy::print_stdout, reason = "a benchmark's output is its purpose")]
    {
        println!("{table}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{name}.json"));
    fs::write(&file, serde_json::to_vec_pretty(rows)?)?;
    Ok(file)
}
