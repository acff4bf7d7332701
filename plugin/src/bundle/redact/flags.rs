//! Flags of command lines: which one has a secret behind it.

use super::names::{is_chosen, is_secret};

/// The flags of a program, with one dash, whose values are secrets.
pub(super) type Program = &'static [&'static str];

const PROGRAMS: [(&[&str], Program); 9] = [
    (
        &[
            "mysql",
            "mysqladmin",
            "mysqldump",
            "mysqlcheck",
            "mysqlshow",
            "mysqlimport",
            "mariadb",
            "mariadb-admin",
            "mariadb-dump",
            "sshpass",
            "cqlsh",
            "rabbitmqadmin",
            "mongo",
            "mongosh",
            "mongodump",
            "login",
        ],
        &["p"],
    ),
    (&["redis-cli", "valkey-cli", "redis-benchmark"], &["a"]),
    (&["curl"], &["u", "U", "-user", "-proxy-user"]),
    (&["nodetool", "plink", "pscp"], &["pw"]),
    (&["ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami"], &["w"]),
    (&["snmpget", "snmpwalk", "snmpset", "snmpbulkwalk", "snmptrap"], &["c", "A", "X"]),
    (&["ipmitool", "zip", "unzip"], &["P"]),
    (&["smbclient"], &["U"]),
    (&["swaks"], &["ap"]),
];

/// What runs, by its name or its path.
pub(super) fn program(word: &str) -> Option<Program> {
    let name = word.rsplit('/').next().unwrap_or(word);
    PROGRAMS.iter().find(|(names, _)| names.contains(&name)).map(|(_, flags)| *flags)
}

/// Whether what comes behind this argument is a secret.
pub(super) fn is_before_secret(argument: &str, program: Option<Program>) -> bool {
    let Some(name) = argument.strip_prefix('-') else { return false };
    is_short(name, program)
        || (is_secret(name.trim_start_matches('-')) && !argument.contains(['=', ' ']))
}

pub(super) fn is_short(name: &str, program: Option<Program>) -> bool {
    program.is_some_and(|flags| flags.contains(&name))
}

/// `-pX`: the flag, if a secret hangs on it. Without a program that is known, only what looks like no word.
pub(super) fn attached(argument: &str, program: Option<Program>) -> Option<&str> {
    let name = argument.strip_prefix('-')?;
    let flags = program.unwrap_or(&["p", "P"]);
    let flag = flags.iter().find(|flag| name.len() > flag.len() && name.starts_with(**flag))?;
    let (flag, value) = argument.split_at_checked(flag.len() + 1)?;
    let is_secret = match program {
        Some(_) => !value.starts_with(char::is_whitespace),
        None => is_loud(value),
    };
    is_secret.then_some(flag)
}

/// Behind `-p` of a program that is not known: no port, no path, no name.
pub(super) fn is_loud(value: &str) -> bool {
    is_chosen(value)
        && value.chars().any(char::is_uppercase)
        && value.chars().any(|letter| letter.is_ascii_digit())
        && !value.contains(['/', '<', '>', ' ', ','])
}
