//! The client of a kubeconfig whose credentials a program gets: it runs when the client is made, and may ask the user to log
//! in. It has a limit, and what is waited for is said. What it prints is shown nowhere.

use std::path::Path;
use std::time::Duration;

use kube::client::AuthError;
use kube::{Client, Config};
use tokio::time::{sleep, timeout};

use super::unanswered::causes;
use crate::exit::{Exit, Failure};

/// To log in by a browser takes a while.
const LONGEST: Duration = Duration::from_secs(300);
/// When it is said what is waited for.
const SLOW: Duration = Duration::from_secs(3);

/// Makes the client. `say` is given a line where the credentials take a while.
///
/// # Errors
/// The program does not run, fails, or takes too long; or the certificates or the proxy cannot be used.
pub(super) async fn client(
    config: Config,
    limit: Option<Duration>,
    say: impl FnOnce(&str),
) -> Result<Client, Failure> {
    let Some(program) = program(&config) else { return made(Client::try_from(config), "") };
    let limit = limit.filter(|limit| !limit.is_zero()).unwrap_or(LONGEST);
    let client = timeout(limit, tokio::task::spawn_blocking(move || Client::try_from(config)));
    let waiting = async {
        sleep(SLOW).await;
        say(&format!("waiting for the credential plugin {program}"));
        std::future::pending::<()>().await;
    };
    let client = tokio::select! {
        biased;
        client = client => client,
        () = waiting => return Err(silent(&program, limit)),
    };
    match client {
        Ok(Ok(client)) => made(client, &program),
        Ok(Err(error)) => Err(failed(&program).because(&error)),
        Err(_) => Err(silent(&program, limit)),
    }
}

/// What it is called; its arguments may have secrets.
fn program(config: &Config) -> Option<String> {
    let command = config.auth_info.exec.as_ref()?.command.as_ref()?;
    let name = Path::new(command).file_name()?;
    Some(name.to_string_lossy().into_owned())
}

fn made(client: kube::Result<Client>, program: &str) -> Result<Client, Failure> {
    client.map_err(|error| match &error {
        kube::Error::Auth(AuthError::AuthExecStart(source)) => {
            let message = format!("the credential plugin {program} cannot be started");
            let hint = "install it, or correct `exec.command`: kubectl config view --minify";
            let failure = Failure::new(Exit::Unreachable, "no-credentials", message, hint);
            failure.because(source)
        }
        _ => {
            let message = "no client can be made for the API server";
            let hint =
                "look at the certificates, the proxy and the credential plugin of the kubeconfig";
            let failure = Failure::new(Exit::Unreachable, "no-client", message, hint);
            Failure { causes: causes(&error), ..failure }
        }
    })
}

fn failed(program: &str) -> Failure {
    let message = format!("the credential plugin {program} failed");
    Failure::new(Exit::Unreachable, "no-credentials", message, "run it by hand to see why")
}

fn silent(program: &str, limit: Duration) -> Failure {
    let message =
        format!("the credential plugin {program} gave no credentials within {} s", limit.as_secs());
    let hint = "run it by hand to see what it waits for; to wait longer: --request-timeout 10m";
    Failure::new(Exit::Unreachable, "no-credentials", message, hint)
}
