//! What was measured of a network, as text.

use std::io::{self, Write};

use opensdn_validate::report::printable;

use crate::output::cluster_line;

use super::speed::{ConnectivitySpeed, Found, Measured};

impl ConnectivitySpeed {
    /// Writes it, a line for each way.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = cluster_line(self.cluster.as_deref(), self.server.as_deref());
        writeln!(out, "{line}\n")?;
        let longest = |name: fn(&Measured) -> &str, title: &str| {
            let names = self.measurements.iter().map(|one| name(one).chars().count());
            names.chain([title.len()]).max().unwrap_or_default()
        };
        let (from, to) = (longest(|one| &one.from, "FROM"), longest(|one| &one.to, "TO"));
        writeln!(
            out,
            "{:from$}  {:to$}  NETWORK    THROUGHPUT  ROUND TRIP     P99  OF NODES",
            "FROM", "TO"
        )?;
        for one in &self.measurements {
            write!(out, "{:from$}  {:to$}  {:<7}  ", one.from, one.to, one.over.word())?;
            match &one.found {
                Found::Fast {
                    megabits_per_second,
                    round_trip_microseconds,
                    round_trip_p99_microseconds,
                } => {
                    let rate = rate(*megabits_per_second);
                    let [median, p99] = [*round_trip_microseconds, *round_trip_p99_microseconds]
                        .map(|micros| format!("{micros} µs"));
                    let share = self.of_nodes(one).map(|share| format!("{share} %"));
                    let share = share.unwrap_or_default();
                    let line = format!("{rate:>12}  {median:>10}  {p99:>6}  {share:>8}");
                    writeln!(out, "{}", line.trim_end())?;
                }
                Found::Not { why } => writeln!(out, "not measured: {}", printable(why))?,
            }
        }
        Ok(())
    }
}

/// `8.01 Gbit/s`, `800 Mbit/s`.
fn rate(megabits: u64) -> String {
    match megabits {
        0..1_000 => format!("{megabits} Mbit/s"),
        _ => {
            let hundredths = megabits / 10;
            format!("{}.{:02} Gbit/s", hundredths / 100, hundredths % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn rates_have_the_unit_that_is_read_easily() {
        assert_eq!(
            [0, 999, 1_000, 9_876, 40_010].map(rate),
            ["0 Mbit/s", "999 Mbit/s", "1.00 Gbit/s", "9.87 Gbit/s", "40.01 Gbit/s"]
        );
    }
}
