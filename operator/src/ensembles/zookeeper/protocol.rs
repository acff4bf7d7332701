//! What goes over a connection to ZooKeeper's client port (pure): the few requests that the operator makes, as
//! `zookeeper.jute` of ZooKeeper 3.5 and later defines them. Numbers are big-endian; a text is its length in
//! four bytes, then UTF-8.

use crate::ensemble::Member;

/// The node with the configuration of the ensemble.
pub(super) const CONFIG_NODE: &str = "/zookeeper/config";
/// As clients open a session.
const SESSION_TIMEOUT_MS: i32 = 10_000;
const PASSWORD_LENGTH: usize = 16;
const PARTICIPANT: &str = "participant";

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    /// What a node holds.
    GetData(&'a str),
    /// Has the server catch up with the leader.
    Sync(&'a str),
    /// Who may do what with a node.
    GetAcl(&'a str),
    /// The same, written.
    SetAcl(&'a str, &'a [Acl]),
    /// Members that come and go, if the configuration still has that version.
    Reconfigure { joining: Option<&'a str>, leaving: Option<&'a str>, version: i64 },
    /// Ends the session.
    Close,
}

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Acl {
    /// Bits: 1 read, 2 write, 4 create, 8 delete, 16 administer.
    pub(super) permissions: i32,
    /// How a client is known: `world`, `x509`.
    pub(super) scheme: String,
    /// Who it is.
    pub(super) id: String,
}

/// The ensemble's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    /// Each change has a higher one.
    pub(super) version: i64,
    /// Those that vote.
    pub(super) members: Vec<Member>,
}

/// An answer that is not as ZooKeeper writes it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not one of ZooKeeper's")]
pub(super) struct Malformed;

/// What opens a session.
pub(super) fn connect() -> Vec<u8> {
    let mut out = Vec::new();
    put_int(&mut out, 0);
    out.extend(0_i64.to_be_bytes());
    put_int(&mut out, SESSION_TIMEOUT_MS);
    out.extend(0_i64.to_be_bytes());
    put_int(&mut out, i32::try_from(PASSWORD_LENGTH).unwrap_or_default());
    out.extend([0; PASSWORD_LENGTH]);
    // A server without a quorum is none that could be asked.
    out.push(0);
    out
}

impl Request<'_> {
    /// The request, with the number by which the answer is known.
    pub(super) fn encode(&self, number: i32) -> Vec<u8> {
        let mut out = Vec::new();
        put_int(&mut out, number);
        put_int(&mut out, self.code());
        match self {
            Self::GetData(path) => {
                put_text(&mut out, Some(path));
                out.push(0);
            }
            Self::Sync(path) | Self::GetAcl(path) => put_text(&mut out, Some(path)),
            Self::SetAcl(path, acls) => {
                put_text(&mut out, Some(path));
                put_int(&mut out, i32::try_from(acls.len()).unwrap_or_default());
                for acl in *acls {
                    put_int(&mut out, acl.permissions);
                    put_text(&mut out, Some(&acl.scheme));
                    put_text(&mut out, Some(&acl.id));
                }
                // Whatever version the list has.
                put_int(&mut out, -1);
            }
            Self::Reconfigure { joining, leaving, version } => {
                put_text(&mut out, *joining);
                put_text(&mut out, *leaving);
                put_text(&mut out, None);
                out.extend(version.to_be_bytes());
            }
            Self::Close => {}
        }
        out
    }

    fn code(&self) -> i32 {
        match self {
            Self::GetData(_) => 4,
            Self::GetAcl(_) => 6,
            Self::SetAcl(..) => 7,
            Self::Sync(_) => 9,
            Self::Reconfigure { .. } => 16,
            Self::Close => -11,
        }
    }
}

fn put_int(out: &mut Vec<u8>, number: i32) {
    out.extend(number.to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    let Some(text) = text else { return put_int(out, -1) };
    put_int(out, i32::try_from(text.len()).unwrap_or_default());
    out.extend(text.as_bytes());
}

/// Reads an answer from its beginning.
pub(super) struct Answer<'a>(pub(super) &'a [u8]);

impl Answer<'_> {
    /// The number of the request and the error; `None` for what is no answer but reports a change.
    pub(super) fn header(&mut self) -> Result<(i32, i32), Malformed> {
        let number = self.int()?;
        self.take::<8>()?;
        Ok((number, self.int()?))
    }

    /// The data of a node.
    pub(super) fn data(&mut self) -> Result<Vec<u8>, Malformed> {
        let length = usize::try_from(self.int()?).unwrap_or_default();
        let (data, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(data.to_vec())
    }

    /// Who may do what.
    pub(super) fn acls(&mut self) -> Result<Vec<Acl>, Malformed> {
        let count = self.int()?;
        let mut acls = Vec::new();
        for _ in 0..count {
            let permissions = self.int()?;
            let text = |data: Vec<u8>| String::from_utf8(data).map_err(|_| Malformed);
            let (scheme, id) = (text(self.data()?)?, text(self.data()?)?);
            acls.push(Acl { permissions, scheme, id });
        }
        Ok(acls)
    }

    fn int(&mut self) -> Result<i32, Malformed> {
        self.take().map(i32::from_be_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*number)
    }
}

impl Configuration {
    /// Of lines `server.1=192.0.2.1:2888:3888:participant;192.0.2.1:2181` and `version=100000000`.
    pub(super) fn parse(text: &str) -> Result<Self, Malformed> {
        let mut configuration = Self { version: -1, members: Vec::new() };
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            if key == "version" {
                configuration.version = i64::from_str_radix(value, 16).map_err(|_| Malformed)?;
            } else if let Some(id) = key.strip_prefix("server.") {
                let id = id.parse().map_err(|_| Malformed)?;
                let (host, rest) = split_host(value).ok_or(Malformed)?;
                let (between, _) = rest.split_once(';').unwrap_or((rest, ""));
                // Two ports and the role, which may be left out.
                let role = between.split(':').nth(2).unwrap_or(PARTICIPANT);
                if role == PARTICIPANT {
                    configuration.members.push(Member { id, host: host.to_owned() });
                }
            }
        }
        let is_one = configuration.version >= 0 && !configuration.members.is_empty();
        is_one.then_some(configuration).ok_or(Malformed)
    }
}

/// IPv6 addresses are in brackets.
fn split_host(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(text) => text.split_once("]:"),
        None => text.split_once(':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_its_version_and_those_that_vote() {
        let text = "server.1=192.0.2.1:2888:3888:participant;192.0.2.1:2181\n\
            server.12=[2001:db8::1]:2888:3888;[2001:db8::1]:2181\n\
            server.3=host.example:2888:3888:observer;2181\nversion=10000001a";
        let configuration = Configuration::parse(text).unwrap();
        assert_eq!(configuration.version, 0x1_0000_001a);
        let members: Vec<_> =
            configuration.members.iter().map(|one| (one.id, one.host.as_str())).collect();
        assert_eq!(members, [(1, "192.0.2.1"), (12, "2001:db8::1")]);
    }

    #[test]
    fn what_is_no_configuration_is_an_error() {
        for text in [
            "",
            "version=1",
            "server.1=a:1:2:participant",
            "version=x\nserver.1=a:1:2",
            "server.x=a:1:2\nversion=1",
        ] {
            assert_eq!(Configuration::parse(text), Err(Malformed), "{text:?}");
        }
    }

    #[test]
    fn an_answer_that_ends_early_or_lies_about_its_length_is_an_error() {
        let mut whole = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0];
        whole.extend([0, 0, 0, 2, b'a', b'b']);
        let mut answer = Answer(&whole);
        assert_eq!(answer.header(), Ok((1, 0)));
        assert_eq!(answer.data(), Ok(b"ab".to_vec()));
        for length in 0..whole.len() {
            let mut answer = Answer(whole.get(..length).unwrap());
            assert_eq!(answer.header().and_then(|_| answer.data()), Err(Malformed), "{length}");
        }
        assert_eq!(Answer(&[0x7f, 0xff, 0xff, 0xff, 0]).data(), Err(Malformed));
        assert_eq!(Answer(&[0x7f, 0xff, 0xff, 0xff, 0]).acls(), Err(Malformed));
    }

    #[test]
    fn a_reconfiguration_names_only_what_changes_and_the_version_it_is_for() {
        let request = Request::Reconfigure { joining: Some("s"), leaving: None, version: 2 };
        let expected = [
            [0, 0, 0, 7].as_slice(),
            &[0, 0, 0, 16],
            &[0, 0, 0, 1, b's'],
            &[0xff; 4],
            &[0xff; 4],
            &[0, 0, 0, 0, 0, 0, 0, 2],
        ];
        assert_eq!(request.encode(7), expected.concat());
    }
}
