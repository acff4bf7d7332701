//! The servers of ZooKeeper: what they are asked, and how a member comes or goes.

mod protocol;
mod session;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use self::protocol::Acl;
use self::session::{Session, SessionError, is_leader};
use crate::ensemble::{
    Access, Answer, Answers, Change, ChangeError, Ensemble, Member, OPERATOR, View, ask_each,
};

const READ: i32 = 1;
const WRITE: i32 = 2;

/// The ports of all servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Servers {
    pub(crate) client: u16,
    pub(crate) secure: u16,
    pub(crate) quorum: u16,
    pub(crate) election: u16,
}

impl Ensemble for Servers {
    fn look<'a>(&'a self, access: &'a Access, addresses: &'a [String]) -> BoxFuture<'a, Answers> {
        let ask = async move |address: &'a str| {
            let said = self.ask(access, address).await;
            said.map_err(|error| opensdn_runtime::error_chain(&error))
        };
        ask_each(addresses, ask).boxed()
    }

    fn make<'a>(
        &'a self,
        access: &'a Access,
        view: &'a View,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), ChangeError>> {
        let made = self.change(access, view, change);
        made.map(|made| made.map_err(ChangeError::of)).boxed()
    }
}

impl Servers {
    async fn ask(&self, access: &Access, address: &str) -> Result<Answer, SessionError> {
        let mut session = Session::open(address, self.secure, &access.operator).await?;
        let configuration = session.configuration().await?;
        session.close().await;
        let is_leader = is_leader(address, self.secure, &access.operator).await?;
        let (version, members) = (configuration.version, configuration.members);
        Ok(Answer { version, members, is_leader, ..Answer::default() })
    }

    async fn change(
        &self,
        access: &Access,
        view: &View,
        change: &Change,
    ) -> Result<(), SessionError> {
        self.allow(access, view).await?;
        let mut session = Session::open(&view.leader, self.secure, &access.operator).await?;
        let made = match change {
            Change::Add(member) => {
                session.reconfigure(Some(&self.line(member)), None, view.version).await
            }
            Change::Remove(member) => {
                let id = member.id.to_string();
                session.reconfigure(None, Some(&id), view.version).await
            }
        };
        session.close().await;
        made
    }

    /// Has the operator's certificate suffice for changes, which the superuser allows once.
    async fn allow(&self, access: &Access, view: &View) -> Result<(), SessionError> {
        let mut session = Session::open(&view.leader, self.secure, &access.superuser).await?;
        let everybody = Acl { permissions: READ, scheme: "world".into(), id: "anyone".into() };
        let operator = Acl {
            permissions: READ | WRITE,
            scheme: "x509".to_owned(),
            id: format!("CN={OPERATOR}"),
        };
        let wanted = [everybody, operator];
        if session.acls().await? != wanted {
            session.set_acls(&wanted).await?;
        }
        session.close().await;
        Ok(())
    }

    fn line(&self, member: &Member) -> String {
        let Self { client, quorum, election, .. } = self;
        // IPv6.
        let host = if member.host.contains(':') {
            format!("[{}]", member.host)
        } else {
            member.host.clone()
        };
        format!("server.{}={host}:{quorum}:{election}:participant;{host}:{client}", member.id)
    }
}
