//! Services that count their own members: which of them are, is reported to the service itself, one change at a
//! time, after a look at it. What such a service is asked, and how, is in its component; what is done next is
//! in `plan.rs`, and names no component.
//!
//! A member is known by its address, since what it has stored lies in a folder of its node.

pub mod plan;
pub mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use opensdn_pki::{
    Authorities, AuthorityError, Identity, IdentityError, KeyKind, LeafProfile, Usage,
    crypto_provider, parse_certificates,
};
use rustls::ClientConfig;
use rustls::sign::SingleCertAndKey;
use time::{Duration, OffsetDateTime};

use crate::exec::Exec;

/// What the operator's certificate names.
pub const OPERATOR: &str = "opensdn-operator";
/// What that certificate names that is used only to give the operator its rights.
pub const SUPER: &str = "opensdn-operator-super";
/// What a container writes as its last message when it finds that what its member had stored is gone.
pub const DATA_LOST: &str = "opensdn: data lost";
/// Long enough for one look.
const LIFETIME: Duration = Duration::hours(1);

/// A service that counts its members.
pub trait Ensemble: Debug + Send + Sync {
    /// How a member comes.
    fn joins(&self) -> Joins {
        Joins::WhenAdded
    }

    /// How a member goes.
    fn leaves(&self) -> Leaves {
        Leaves::BeforeItsPod
    }

    /// Does a part of what is left to do for the members that there are. Every member serves when this is asked.
    fn tend<'a>(
        &'a self,
        access: &'a Access,
        view: &'a View,
    ) -> BoxFuture<'a, Result<Tended, ChangeError>> {
        let _ = (access, view);
        Box::pin(std::future::ready(Ok(Tended::default())))
    }

    /// What keeps a member from being started again just now, as the service says: `None`, if it can spare it. Every
    /// member serves when this is asked.
    fn may_spare<'a>(
        &'a self,
        access: &'a Access,
        address: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChangeError>> {
        let _ = (access, address);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Whether what runs there was a member and has left for good: it comes again only when it is started again. Asked of who is to
    /// be a member and is none.
    fn has_left<'a>(
        &'a self,
        access: &'a Access,
        address: &'a str,
    ) -> BoxFuture<'a, Result<bool, ChangeError>> {
        let _ = (access, address);
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Asks each of these addresses.
    fn look<'a>(&'a self, access: &'a Access, addresses: &'a [String]) -> BoxFuture<'a, Answers>;

    /// Makes one change, if the members are still those of the view. When this returns, it may not be so yet.
    fn make<'a>(
        &'a self,
        access: &'a Access,
        view: &'a View,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), ChangeError>>;
}

/// How a member comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// The others are notified of it when it runs and has caught up.
    WhenAdded,
    /// It notifies them itself when it starts.
    ByItself,
    /// The same, and it takes from each of them what it shall have: it does not come while one of them is down.
    ByStreaming,
}

/// How a member goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// The service is notified while it runs, and its pod ends then.
    BeforeItsPod,
    /// Its pod ends first, and then the others are notified.
    AfterItsPod,
}

/// A change of the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// One that runs already becomes a member.
    Add(Member),
    /// One is none any more.
    Remove(Member),
}

/// What the service said of a change that was not made, or of which it is not known whether it was.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ChangeError(pub String);

impl ChangeError {
    /// What an error says, with its causes.
    #[must_use]
    pub fn of(error: impl std::error::Error) -> Self {
        Self(opensdn_runtime::error_chain(&error))
    }
}

/// Asks each of these addresses, all at once: what it answered, or why it did not.
pub(crate) async fn ask_each<'a, Said, Asked>(
    addresses: &'a [String],
    ask: impl Fn(&'a str) -> Asked,
) -> BTreeMap<String, Result<Said, String>>
where
    Asked: Future<Output = Result<Said, String>>,
{
    let asked = addresses.iter().map(|address| ask(address).map(|said| (address.clone(), said)));
    join_all(asked).await.into_iter().collect()
}

/// A member, as the service lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub id: u32,
    /// Its address, or the name of its node.
    pub host: String,
}

/// What came of tending the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tended {
    /// What is being done; `None` when nothing is left to do.
    pub does: Option<String>,
    /// How many members may be away so that all that is stored can be read and written, if the service has said it.
    pub spare: Option<i32>,
}

/// What one address answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The version of the list of members; each change has a higher one.
    pub version: i64,
    /// The members, by what this one knows.
    pub members: Vec<Member>,
    /// Whether this one leads.
    pub is_leader: bool,
    /// The hosts of members that have begun to leave.
    pub leaving: BTreeSet<String>,
}

/// What each address answered, or why it did not.
pub type Answers = BTreeMap<String, Result<Answer, String>>;

/// The service, as a majority of its members sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The version of the list of members.
    pub version: i64,
    /// The members; their hosts are addresses.
    pub members: Vec<Member>,
    /// Who serves, member or not.
    pub serving: BTreeSet<String>,
    /// Who leads.
    pub leader: String,
    /// Who has begun to leave.
    pub leaving: BTreeSet<String>,
}

/// Why nothing can be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoQuorum(pub String);

impl View {
    /// What the answers come to. `address_of` is that of a host in the list. Who `has_left`, by our own doing, and
    /// is only to be taken off the list, is not missed.
    ///
    /// # Errors
    /// Fewer than most of the members answer, or they disagree.
    pub fn of(
        answers: &Answers,
        address_of: impl Fn(&str) -> String,
        has_left: impl Fn(&str) -> bool,
    ) -> Result<Self, NoQuorum> {
        let good =
            answers.iter().filter_map(|(address, said)| Some((address, said.as_ref().ok()?)));
        let newest = good.clone().max_by_key(|(_, said)| said.version);
        let Some((_, newest)) = newest else {
            let why: Vec<_> = answers
                .iter()
                .filter_map(|(address, said)| Some(format!("{address}: {}", said.as_ref().err()?)))
                .collect();
            return Err(NoQuorum(format!("no member answers: {}", why.join("; "))));
        };
        let address = |member: &Member| Member { host: address_of(&member.host), ..member.clone() };
        let members: Vec<Member> = newest.members.iter().map(address).collect();
        let lists = good.clone().filter(|(_, said)| said.version == newest.version);
        let other = lists.map(|(address, said)| (address, hosts(&said.members)));
        let other = other.into_iter().find(|(_, hosts)| *hosts != self::hosts(&newest.members));
        if let Some((who, others)) = other {
            return Err(NoQuorum(format!(
                "they disagree about who is a member: {who} says {others:?}, another {:?}",
                hosts(&newest.members)
            )));
        }
        // Who knows an older list has not caught up.
        let current = good.clone().filter(|(_, said)| said.version == newest.version);
        let serving: BTreeSet<String> = current.map(|(address, _)| address.clone()).collect();
        let leaders: Vec<&String> =
            good.filter(|(_, said)| said.is_leader).map(|(address, _)| address).collect();
        let serves = |member: &Member| serving.contains(&member.host);
        let count = members.iter().filter(|member| serves(member)).count();
        let left = members.iter().filter(|member| !serves(member) && has_left(&member.host));
        let members_left = members.len() - left.count();
        if count <= members_left / 2 {
            return Err(NoQuorum(format!("{count} of {members_left} members answer")));
        }
        let leader = match leaders.as_slice() {
            [leader] => (*leader).clone(),
            [] => return Err(NoQuorum("none of the members leads".to_owned())),
            more => {
                let more: Vec<_> = more.iter().map(|one| one.as_str()).collect();
                return Err(NoQuorum(format!(
                    "{} lead at once: look at which of them has what was stored, and stop the pods of the others \
                     with their folders moved away",
                    more.join(" and ")
                )));
            }
        };
        let leaving = newest.leaving.iter().map(|host| address_of(host)).collect();
        Ok(Self { version: newest.version, members, serving, leader, leaving })
    }

    /// Whether one of the members has that address.
    #[must_use]
    pub fn has(&self, address: &str) -> bool {
        self.members.iter().any(|member| member.host == address)
    }
}

fn hosts(members: &[Member]) -> BTreeSet<&str> {
    members.iter().map(|member| member.host.as_str()).collect()
}

/// How the operator shows who it is.
#[derive(Clone, Debug)]
pub struct Access {
    /// With the certificate of [`OPERATOR`].
    pub operator: Arc<ClientConfig>,
    /// With that of [`SUPER`].
    pub superuser: Arc<ClientConfig>,
    /// Where programs of members are run.
    pub exec: Arc<dyn Exec>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AccessError {
    #[error("issue a certificate for the operator")]
    Issue(#[from] AuthorityError),
    #[error("read a certificate that was just issued")]
    Read(#[from] IdentityError),
    #[error("configure TLS")]
    Tls(#[from] rustls::Error),
}

impl Access {
    /// With certificates of the CA that are nowhere but in this process. `trusted` are the CAs of members, in PEM.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn new(
        authorities: &Authorities,
        trusted: &str,
        now: OffsetDateTime,
        exec: Arc<dyn Exec>,
    ) -> Result<Self, AccessError> {
        let config = |name: &str| -> Result<Arc<ClientConfig>, AccessError> {
            let profile = LeafProfile {
                common_name: name.to_owned(),
                names: vec![name.to_owned()],
                lifetime: LIFETIME,
                usage: Usage::Client,
                key: KeyKind::default(),
            };
            let leaf = authorities.current.issue(&profile, now)?;
            let identity =
                Identity::from_pem(leaf.certificate().as_bytes(), leaf.key().as_bytes())?;
            let mut roots = rustls::RootCertStore::empty();
            for certificate in parse_certificates(trusted.as_bytes())? {
                roots.add(certificate)?;
            }
            let config = ClientConfig::builder_with_provider(crypto_provider())
                .with_safe_default_protocol_versions()?
                .with_root_certificates(roots)
                .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(
                    identity.certified_key(),
                )));
            Ok(Arc::new(config))
        };
        Ok(Self { operator: config(OPERATOR)?, superuser: config(SUPER)?, exec })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(version: i64, members: &[u32], is_leader: bool) -> Result<Answer, String> {
        let members = members.iter().map(|id| Member { id: *id, host: format!("h{id}") }).collect();
        Ok(Answer { version, members, is_leader, ..Answer::default() })
    }

    fn view(answers: &[(&str, Result<Answer, String>)]) -> Result<View, NoQuorum> {
        let answers =
            answers.iter().map(|(host, said)| ((*host).to_owned(), said.clone())).collect();
        View::of(&answers, |host| host.replace('h', "a"), |host| host == "a9")
    }

    #[test]
    fn the_newest_list_that_most_of_its_members_know_counts() {
        let all = [
            ("a1", said(7, &[1, 2, 3], true)),
            ("a2", said(7, &[1, 2, 3], false)),
            ("a3", said(6, &[3], false)),
        ];
        let view = view(&all).unwrap();
        assert_eq!((view.version, view.leader.as_str()), (7, "a1"));
        assert!(view.has("a3") && !view.serving.contains("a3"), "it has not caught up");
        assert_eq!(view.serving.len(), 2);
    }

    #[test]
    fn without_most_of_the_members_nothing_is_decided() {
        let lost = || Err("connection refused".to_owned());
        let one = view(&[("a1", said(7, &[1, 2, 3], true)), ("a2", lost()), ("a3", lost())]);
        assert_eq!(one, Err(NoQuorum("1 of 3 members answer".to_owned())));
        let half = view(&[("a1", said(7, &[1, 2], true)), ("a2", lost())]);
        assert_eq!(half, Err(NoQuorum("1 of 2 members answer".to_owned())));
        let none = view(&[("a1", lost())]).unwrap_err();
        assert!(none.0.contains("a1: connection refused"), "{none}");
    }

    #[test]
    fn those_that_are_no_members_do_not_count() {
        let all = [
            ("a1", said(7, &[1, 2, 3], true)),
            ("a8", said(7, &[1, 2, 3], false)),
            ("a9", said(7, &[1, 2, 3], false)),
        ];
        assert_eq!(view(&all), Err(NoQuorum("1 of 3 members answer".to_owned())));
    }

    #[test]
    fn who_has_left_by_our_own_doing_is_not_missed() {
        let lost = || Err("connection refused".to_owned());
        let last = view(&[("a1", said(0, &[1, 9], true)), ("a9", lost())]);
        assert!(last.unwrap().has("a9"), "it has to be taken off the list");
        let other = view(&[("a1", said(0, &[1, 2], true)), ("a2", lost())]);
        assert!(other.is_err());
    }

    #[test]
    fn members_that_disagree_about_who_is_one_decide_nothing() {
        let all = [("a1", said(0, &[1, 2], true)), ("a2", said(0, &[1, 2, 3], false))];
        let why = view(&all).unwrap_err().0;
        assert!(why.contains("they disagree about who is a member"), "{why}");
        let other_order = [("a1", said(0, &[1, 2], true)), ("a2", said(0, &[2, 1], false))];
        assert!(view(&other_order).is_ok());
    }

    #[test]
    fn two_leaders_are_said_and_nothing_is_decided() {
        let all = [
            ("a1", said(7, &[1, 2], true)),
            ("a2", said(7, &[1, 2], false)),
            ("a3", said(1, &[3], true)),
        ];
        assert!(view(&all).unwrap_err().0.contains("a1 and a3 lead at once"));
        let none = [("a1", said(7, &[1, 2], false)), ("a2", said(7, &[1, 2], false))];
        assert!(view(&none).is_err());
    }
}
