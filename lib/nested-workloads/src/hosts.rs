//! A block of lines in /etc/hosts between markers, so that writing it twice changes nothing and what else is
//! in the file stays as it is.

use std::net::IpAddr;

use crate::shape;

const BEGIN: &str = "# BEGIN opensdn nested";
const END: &str = "# END opensdn nested";

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its InternalIP.
    pub address: IpAddr,
    /// Its names: that of the node, its Hostname, its full one.
    pub names: Vec<String>,
}

/// Why there is no block, or no place for it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// A name that a line must not have.
    #[error("{name:?} of node {address} is not a name of a host")]
    Name {
        /// The node.
        address: IpAddr,
        /// The name.
        name: String,
    },
    /// A node without a name.
    #[error("node {0} has no name")]
    NoName(IpAddr),
    /// One marker without the other, or one twice: what is between them is not known.
    #[error(
        "the lines `{BEGIN}` and `{END}` are not there once each and in this order; remove them and what was \
         written between them"
    )]
    Markers,
}

/// The block, with its markers.
///
/// # Errors
/// A node has no name, or one that is none.
pub fn block(hosts: &[Host]) -> Result<String, HostsError> {
    let mut lines = vec![BEGIN.to_owned()];
    for Host { address, names } in hosts {
        if names.is_empty() {
            return Err(HostsError::NoName(*address));
        }
        if let Some(name) = names.iter().find(|name| !shape::NAME.holds(name)) {
            return Err(HostsError::Name { address: *address, name: name.clone() });
        }
        lines.push(format!("{address} {}", names.join(" ")));
    }
    lines.push(END.to_owned());
    Ok(lines.join("\n") + "\n")
}

/// The text of /etc/hosts with the block in the place of the one that is in it, else at its end.
///
/// # Errors
/// The nodes make no block, or the markers in the file are not as they were written.
pub fn merged(existing: &str, hosts: &[Host]) -> Result<String, HostsError> {
    let block = block(hosts)?;
    let lines: Vec<&str> = existing.split_inclusive('\n').collect();
    let at = |marker: &str| {
        let places = lines.iter().enumerate().filter(|(_, line)| line.trim() == marker);
        places.map(|(at, _)| at).collect::<Vec<_>>()
    };
    match (at(BEGIN).as_slice(), at(END).as_slice()) {
        ([], []) => {
            let is_open = !existing.is_empty() && !existing.ends_with('\n');
            Ok(format!("{existing}{}{block}", if is_open { "\n" } else { "" }))
        }
        (&[begin], &[end]) if begin < end => {
            let before: String = lines.iter().take(begin).copied().collect();
            let after: String = lines.iter().skip(end + 1).copied().collect();
            Ok(format!("{before}{block}{after}"))
        }
        _ => Err(HostsError::Markers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str, names: &[&str]) -> Host {
        Host {
            address: address.parse().unwrap(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn the_block_is_written_once_and_the_rest_of_the_file_is_kept() {
        let first = [host("10.0.0.1", &["master1"])];
        let second = [host("10.0.0.1", &["master1"]), host("10.0.0.2", &["minion1", "m.example"])];
        for before in ["", "127.0.0.1 localhost\n", "127.0.0.1 localhost"] {
            let once = merged(before, &first).unwrap();
            assert!(once.starts_with(before));
            assert_eq!(merged(&once, &first).unwrap(), once);
            let with_more = format!("{once}::1 localhost\n");
            let changed = merged(&with_more, &second).unwrap();
            assert!(changed.contains("10.0.0.2 minion1 m.example\n"));
            assert_eq!(merged(&changed, &first).unwrap(), with_more);
        }
    }

    #[test]
    fn markers_that_were_changed_are_not_guessed_about() {
        let block = block(&[host("10.0.0.1", &["a"])]).unwrap();
        let twice = format!("{block}{block}");
        for broken in [BEGIN, END, twice.as_str(), "# END opensdn nested\n# BEGIN opensdn nested\n"]
        {
            assert_eq!(merged(broken, &[]).unwrap_err(), HostsError::Markers, "{broken}");
        }
    }

    #[test]
    fn a_name_that_would_make_another_line_is_refused() {
        for hostile in ["a\n10.0.0.9 b", "a b", "", "a#b", "$(id)", "{{ a }}"] {
            assert!(block(&[host("10.0.0.1", &[hostile])]).is_err(), "{hostile:?}");
        }
        assert!(block(&[host("10.0.0.1", &[])]).is_err());
    }
}
