//! What is asked on a terminal before something is changed, and what its answers do. The terminal is one of `script`, as
//! util-linux has it.

use std::process::Stdio;

use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{Plugin, only_api_server, uids};

/// A command on a terminal.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    /// All that was written on it.
    seen: String,
}

impl Terminal {
    fn of(plugin: &Plugin, line: &str) -> Result<Self, Failed> {
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command"])
            .arg(format!("stty cols 100; exec '{}' {line}", plugin.program.display()))
            .arg("/dev/null")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm")
            .env("HOME", plugin.home.path())
            .env("KUBECONFIG", &plugin.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let keys = child.stdin.take().ok_or("no stdin")?;
        let screen = child.stdout.take().ok_or("no stdout")?;
        Ok(Self { child, keys, screen, seen: String::new() })
    }

    /// Reads until this is on it.
    async fn until(&mut self, part: &str) -> Outcome {
        let mut some = [0; 4096];
        while !self.seen.contains(part) {
            let number = self.screen.read(&mut some).await?;
            if number == 0 {
                return Err(format!("{part:?} is missing in: {}", self.seen).into());
            }
            self.seen.push_str(&String::from_utf8_lossy(&some[..number]));
        }
        Ok(())
    }

    async fn types(&mut self, keys: &str) -> Outcome {
        self.keys.write_all(keys.as_bytes()).await?;
        Ok(self.keys.flush().await?)
    }

    /// All that was on it, when the command has ended with this code.
    async fn ended(mut self, code: i32) -> Result<String, Failed> {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).await?;
        self.seen.push_str(&String::from_utf8_lossy(&rest));
        let status = self.child.wait().await?;
        assert_eq!(status.code(), Some(code), "{}", self.seen);
        Ok(self.seen)
    }
}

/// Types an answer to what is asked.
async fn answered(
    plugin: &Plugin,
    line: &str,
    question: &str,
    keys: &str,
    code: i32,
) -> Result<String, Failed> {
    let mut terminal = Terminal::of(plugin, line)?;
    terminal.until(question).await?;
    terminal.types(keys).await?;
    terminal.ended(code).await
}

async fn number_of_objects(sandbox: &Sandbox) -> Result<usize, Failed> {
    Ok(uids(sandbox).await?.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_terminal_only_a_yes_installs_and_an_interrupt_detaches() -> Outcome {
    const INSTALL: &str = "install --wait=false";
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    // Enter alone, a no, a word, and the end of what is typed.
    for keys in ["\r", "n\r", "yess\r", "\u{4}"] {
        let seen = answered(&plugin, INSTALL, "? [y/N] ", keys, 5).await?;
        assert!(seen.contains("nothing has been changed"), "{keys:?}: {seen}");
        assert!(seen.contains("will create "), "the plan is shown before: {seen}");
        assert_eq!(number_of_objects(&sandbox).await?, 0, "{keys:?}");
    }
    // Ctrl-C at the question.
    let mut asked = Terminal::of(&plugin, INSTALL)?;
    asked.until("? [y/N] ").await?;
    asked.types("\u{3}").await?;
    asked.ended(130).await?;
    assert_eq!(number_of_objects(&sandbox).await?, 0);

    let seen = answered(&plugin, INSTALL, "? [y/N] ", "y\r", 0).await?;
    assert!(seen.contains("is installed: "), "{seen}");
    let all = number_of_objects(&sandbox).await?;
    assert!(all > 50, "{all}");

    // Progress is a line that changes; an interrupt detaches.
    let mut waiting = Terminal::of(&plugin, "install")?;
    waiting.until("waiting for programs").await?;
    waiting.types("\u{3}").await?;
    let seen = waiting.ended(130).await?;
    assert!(seen.contains("detached: all is applied") && seen.contains(" \r"), "{seen}");
    Ok(())
}

/// Controllers run here: without them no namespace ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_terminal_only_a_yes_removes_and_only_the_name_of_the_cluster_purges() -> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    plugin.run("install --yes --wait=false").await?.ended(0);
    let all = number_of_objects(&sandbox).await?;
    let name = sandbox.kubectl(&["config", "current-context"]).await?;
    let name = String::from_utf8(name.stdout)?.trim().to_owned();
    let question = format!("Type {name} to continue: ");
    for keys in ["y\r", "\r", &format!("{name}x\r")] {
        answered(&plugin, "uninstall --purge", &question, keys, 5).await?;
        assert_eq!(number_of_objects(&sandbox).await?, all, "{keys:?}");
    }
    answered(&plugin, "uninstall", "? [y/N] ", "n\r", 5).await?;
    assert_eq!(number_of_objects(&sandbox).await?, all);
    answered(&plugin, "uninstall", "? [y/N] ", "yes\r", 0).await?;
    assert!(number_of_objects(&sandbox).await? < all);
    answered(&plugin, "uninstall --purge", &question, &format!("{name}\r"), 0).await?;
    Ok(())
}
