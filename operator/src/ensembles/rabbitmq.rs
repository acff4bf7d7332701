//! The nodes of RabbitMQ. Its HTTP API neither takes a member out nor says who is to be spared, so they are asked and
//! changed by the command line in their pods.

mod status;

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use self::status::{Status, answers, number_of};
use crate::ensemble::{
    Access, Answers, Change, ChangeError, Ensemble, Joins, Leaves, Member, View, ask_each,
};
use crate::exec::{ExecError, Output, brief};

const CONTAINER: &str = "rabbitmq";
const AS_RABBITMQ: &str = "/etc/contrailconfigmaps/as-rabbitmq.sh";
/// A program of it takes a second, more where the processor has much to do.
const LIMIT: Duration = Duration::from_secs(30);
/// Its own name, and then what it knows.
const STATUS: &str =
    r#"echo "$RABBITMQ_NODENAME" && exec rabbitmqctl -q cluster_status --formatter json"#;
/// Members without which messages or a majority would be gone.
const CHECKS: [&str; 2] =
    ["check_if_node_is_mirror_sync_critical", "check_if_node_is_quorum_critical"];
/// The program does not know the command: before 3.8.
const UNKNOWN: i32 = 64;

/// The nodes of RabbitMQ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes;

impl Ensemble for Nodes {
    fn joins(&self) -> Joins {
        Joins::ByItself
    }

    fn leaves(&self) -> Leaves {
        Leaves::AfterItsPod
    }

    fn may_spare<'a>(
        &'a self,
        access: &'a Access,
        address: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChangeError>> {
        async move {
            for check in CHECKS {
                let said = run(access, address, &["rabbitmq-diagnostics", "-q", check]).await;
                let said = said.map_err(ChangeError::of)?;
                if ![0, UNKNOWN].contains(&said.code) {
                    return Ok(Some(complaint(&said)));
                }
            }
            Ok(None)
        }
        .boxed()
    }

    fn look<'a>(&'a self, access: &'a Access, addresses: &'a [String]) -> BoxFuture<'a, Answers> {
        let ask = move |address: &'a str| ask(access, address);
        async move { answers(ask_each(addresses, ask).await) }.boxed()
    }

    fn make<'a>(
        &'a self,
        access: &'a Access,
        view: &'a View,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), ChangeError>> {
        async move {
            match change {
                Change::Add(member) => {
                    Err(ChangeError(format!("the member on {} joins by itself", member.host)))
                }
                Change::Remove(member) => forget(access, view, member).await,
            }
        }
        .boxed()
    }
}

async fn ask(access: &Access, address: &str) -> Result<Status, String> {
    let said = run(access, address, &["sh", "-c", STATUS]).await;
    let said = said.map_err(|error| opensdn_runtime::error_chain(&error))?;
    if said.code != 0 {
        return Err(complaint(&said));
    }
    Status::read(&said.stdout)
}

/// One that has ended; RabbitMQ itself refuses to forget one that runs.
async fn forget(access: &Access, view: &View, member: &Member) -> Result<(), ChangeError> {
    let now = ask(access, &view.leader).await.map_err(ChangeError)?;
    let Some(node) = now.members().iter().find(|node| number_of(node) == member.id) else {
        return Err(ChangeError(format!("none of the members is the one on {}", member.host)));
    };
    let seen = view.members.iter().map(|member| member.id);
    if !now.has_exactly(seen) {
        return Err(ChangeError("the members have changed since they were looked at".to_owned()));
    }
    let said = run(access, &view.leader, &["rabbitmqctl", "-q", "forget_cluster_node", node]).await;
    let said = said.map_err(ChangeError::of)?;
    if said.code == 0 { Ok(()) } else { Err(ChangeError(complaint(&said))) }
}

async fn run(access: &Access, address: &str, program: &[&str]) -> Result<Output, ExecError> {
    let command = [&["bash", AS_RABBITMQ], program].concat();
    access.exec.run(address, CONTAINER, &command, LIMIT).await
}

/// The first thing that it says. After that come hints for a person at the machine.
fn complaint(said: &Output) -> String {
    let lines = said.stderr.lines().chain(said.stdout.lines()).map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && *line != "Error:");
    match lines.next() {
        Some(line) => brief(line),
        None => format!("the program ended with {} and said nothing", said.code),
    }
}
