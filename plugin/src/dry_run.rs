//! `--dry-run` as kubectl has it: none, client or server. A command that writes nothing into the cluster has no server that
//! could try it, and says so. Without a value it means what it meant when it took none.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Reads the value for a command that writes elsewhere than into the cluster: whether it only shows what it would do.
pub(crate) fn outside_the_cluster() -> impl TypedValueParser<Value = bool> {
    let server = PossibleValue::new("server").hide(true);
    let values = [PossibleValue::new("none"), PossibleValue::new("client"), server];
    PossibleValuesParser::new(values).try_map(|value| match value.as_str() {
        "none" => Ok(false),
        "client" => Ok(true),
        _ => Err("the API server has no part in what is written, so it cannot try it: use client"),
    })
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    fn read(words: &[&str]) -> Result<Option<bool>, clap::Error> {
        let flag = Arg::new("dry-run").long("dry-run").action(ArgAction::Set).num_args(0..=1);
        let flag = flag.require_equals(true).value_parser(super::outside_the_cluster());
        let flag = flag.default_value("none").default_missing_value("client");
        let command = Command::new("x").arg(flag).arg(Arg::new("name"));
        let found = command.try_get_matches_from(std::iter::once(&"x").chain(words));
        found.map(|found| found.get_one("dry-run").copied())
    }

    #[test]
    fn without_a_value_it_only_shows_and_a_server_that_has_no_part_is_refused() {
        let cases: [(&[&str], bool); 5] = [
            (&[], false),
            (&["--dry-run=none"], false),
            (&["--dry-run=client"], true),
            (&["--dry-run"], true),
            (&["--dry-run", "name"], true),
        ];
        for (words, expected) in cases {
            assert_eq!(read(words).unwrap(), Some(expected), "{words:?}");
        }
        for (word, said) in [("server", "use client"), ("yes", "possible values: none, client")] {
            let error = read(&[&format!("--dry-run={word}")]).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
