//! The nodes of Cassandra: what they say of each other by `nodetool`, how one leaves, and how often each keyspace keeps
//! its rows. The latter OpenSDN settles once, by how many nodes there are when it makes a keyspace; what is more than
//! one node later is nothing but more to lose, unless a user raises it.
//!
//! It is changed by one at a time, with a repair after each: a quorum of the new number then always meets one of the
//! old. What a node has to repair it has noted before, beside its data, so that none is forgotten.

mod cql;
mod keyspaces;
mod status;

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use self::cql::Session;
use self::keyspaces::Keyspace;
use self::status::{Row, State};
use crate::ensemble::{
    Access, Answers, Change, ChangeError, Ensemble, Joins, Leaves, Member, Tended, View, ask_each,
};
use crate::exec::brief;

const CONTAINER: &str = "cassandra";
/// So often the rows of a keyspace are kept, where there are so many members: more keeps none safer, but all slower.
pub(crate) const MOST_COPIES: usize = 3;
/// A Java program has to start.
const LIMIT: Duration = Duration::from_secs(20);

/// All nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes {
    pub(crate) cql: u16,
}

impl Ensemble for Nodes {
    fn joins(&self) -> Joins {
        // RangeStreamer.getAllRangesWithStrictSourcesFor: "A node required to move the data consistently is down".
        Joins::ByStreaming
    }

    fn leaves(&self) -> Leaves {
        Leaves::BeforeItsPod
    }

    fn look<'a>(&'a self, access: &'a Access, addresses: &'a [String]) -> BoxFuture<'a, Answers> {
        let ask = async |address| rows(access, address).await.map_err(|error| error.0);
        async move { status::answers(&ask_each(addresses, ask).await) }.boxed()
    }

    fn make<'a>(
        &'a self,
        access: &'a Access,
        view: &'a View,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), ChangeError>> {
        async move {
            match change {
                // It joins by itself.
                Change::Add(_) => Ok(()),
                Change::Remove(member) => self.remove(access, view, member).await,
            }
        }
        .boxed()
    }

    fn tend<'a>(
        &'a self,
        access: &'a Access,
        view: &'a View,
    ) -> BoxFuture<'a, Result<Tended, ChangeError>> {
        async move {
            let rows = rows(access, &view.leader).await?;
            if let Some(row) = rows.iter().find(|row| row.state == State::Leaving) {
                let does = stay(access, &row.host).await?;
                // Keyspaces may be kept less often by now.
                return Ok(Tended { does: Some(does), spare: Some(0) });
            }
            let hosts: Vec<&str> = view.serving.iter().map(String::as_str).collect();
            // What is not repaired yet is not on as many as it is to be.
            let busy = |what: String| Tended { does: Some(what), spare: Some(0) };
            if let Some(what) = repair(access, &hosts).await? {
                return Ok(busy(what));
            }
            let members = view.members.len();
            let mut stored = Stored::read(access, &view.leader, self.cql).await?;
            match stored.replicate(access, &hosts, |one| one.next(members)).await? {
                Some(what) => Ok(busy(what)),
                None => Ok(Tended { does: None, spare: keyspaces::spare(&stored.keyspaces) }),
            }
        }
        .boxed()
    }

    fn has_left<'a>(
        &'a self,
        access: &'a Access,
        address: &'a str,
    ) -> BoxFuture<'a, Result<bool, ChangeError>> {
        // No probe ends it then: it must not be started again while it is not wanted.
        async move { Ok(manage(access, address, &["mode"]).await? == "DECOMMISSIONED") }.boxed()
    }

    fn may_spare<'a>(
        &'a self,
        access: &'a Access,
        address: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChangeError>> {
        async move {
            let rows = rows(access, address).await?;
            let other = rows.iter().find(|row| !row.is_up || row.state != State::Normal);
            Ok(other.map(|row| format!("{} sees {} {}", address, row.host, row.words())))
        }
        .boxed()
    }
}

impl Nodes {
    /// Does the next part of taking a member out: it is asked for again until the member is gone.
    async fn remove(
        &self,
        access: &Access,
        view: &View,
        member: &Member,
    ) -> Result<(), ChangeError> {
        let others: Vec<&str> = view
            .serving
            .iter()
            .map(String::as_str)
            .filter(|&host| host != member.host && view.has(host))
            .collect();
        let Some(&other) = others.first() else {
            return refused("it is the last one, and has all that is stored");
        };
        let rows = rows(access, other).await?;
        let is_it = |row: &&Row| row.host == member.host && row.id == member.id;
        let Some(row) = rows.iter().find(is_it) else { return Ok(()) };
        if !row.is_up {
            if rows.iter().any(|other| other.host != row.host && !other.is_up) {
                return refused(
                    "others do not serve either, so that what it has lost could be theirs too",
                );
            }
            return going(&manage(access, other, &["remove", &row.host_id]).await?);
        }
        if row.state != State::Leaving {
            let hosts: Vec<&str> = view.serving.iter().map(String::as_str).collect();
            if let Some(what) = repair(access, &hosts).await? {
                return refused(&what);
            }
            let fits = |one: &Keyspace| one.fewer(others.len());
            let mut stored = Stored::read(access, other, self.cql).await?;
            if let Some(what) = stored.replicate(access, &hosts, fits).await? {
                return refused(&what);
            }
        }
        going(&manage(access, &member.host, &["leave"]).await?)
    }
}

/// What is stored, as one member says it.
struct Stored {
    session: Session,
    keyspaces: Vec<Keyspace>,
}

impl Stored {
    async fn read(access: &Access, host: &str, cql: u16) -> Result<Self, ChangeError> {
        let session = Session::open(host, cql, &access.operator).await;
        let mut session = session.map_err(ChangeError::of)?;
        let keyspaces = keyspaces::all(&mut session).await.map_err(ChangeError::of)?;
        Ok(Self { session, keyspaces })
    }

    /// Has one keyspace be kept as often as `next` says, and what of it is missing is noted before.
    async fn replicate(
        &mut self,
        access: &Access,
        hosts: &[&str],
        next: impl Fn(&Keyspace) -> Option<u32>,
    ) -> Result<Option<String>, ChangeError> {
        let found = self.keyspaces.iter().find_map(|one| Some((one, next(one)?)));
        let Some((keyspace, factor)) = found else { return Ok(None) };
        for host in hosts {
            manage(access, host, &["owe", &keyspace.name]).await?;
        }
        self.session.run(&keyspace.alter(factor)).await.map_err(ChangeError::of)?;
        let (name, before) = (&keyspace.name, keyspace.factor);
        Ok(Some(format!("keyspace {name} is kept {factor} times, no longer {before}")))
    }
}

/// Of one that was to go and is to stay: while its leave is under way Cassandra does not take it back, and it comes again then;
/// one that has failed ends only with the process.
async fn stay(access: &Access, host: &str) -> Result<String, ChangeError> {
    let said = manage(access, host, &["stay"]).await?;
    Ok(match said.as_str() {
        "running" => format!("the member on {host} leaves, and comes again then"),
        said => format!(
            "the member on {host} has failed to leave, and is started again, to stay: {said}"
        ),
    })
}

/// Has the first member that has something to repair do so, one after the other.
async fn repair(access: &Access, hosts: &[&str]) -> Result<Option<String>, ChangeError> {
    for host in hosts {
        let said = manage(access, host, &["repair"]).await?;
        if said != "done" {
            return Ok(Some(format!("the member on {host} repairs what it has: {said}")));
        }
    }
    Ok(None)
}

async fn rows(access: &Access, address: &str) -> Result<Vec<Row>, ChangeError> {
    status::parse(&said(access, address, &["status"]).await?).map_err(ChangeError)
}

/// Has the script do something, and returns what it says of that, in brief.
async fn manage(access: &Access, address: &str, what: &[&str]) -> Result<String, ChangeError> {
    Ok(brief(&said(access, address, what).await?))
}

/// Runs the script that the pod has for it.
async fn said(access: &Access, address: &str, what: &[&str]) -> Result<String, ChangeError> {
    let command = [&["bash", "/etc/contrailconfigmaps/manage-cassandra.sh"], what].concat();
    let output = access.exec.run(address, CONTAINER, &command, LIMIT).await;
    let output = output.map_err(ChangeError::of)?;
    if output.code == 0 {
        return Ok(output.stdout.trim().to_owned());
    }
    let said = [output.stderr.trim(), output.stdout.trim()].join(" ");
    Err(ChangeError(format!("{} on {address}: {}", what.join(" "), brief(&said))))
}

fn going(said: &str) -> Result<(), ChangeError> {
    if said.starts_with("failed") { refused(said) } else { Ok(()) }
}

fn refused<T>(why: &str) -> Result<T, ChangeError> {
    Err(ChangeError(why.to_owned()))
}
