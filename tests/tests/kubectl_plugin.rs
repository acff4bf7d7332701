//! The plugin as the real kubectl runs it: found by its name, completed through its other name,
//! talking to a real API server with kubectl's flags. Deliberately not here: what the commands print
//! (their transcripts in `plugin/tests`).

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Binaries, User};
use opensdn_testing::shared::Shared;
use opensdn_testing::{Failed, Outcome};
use serde_json::Value;
use tempfile::TempDir;

/// A folder for PATH with the plugin under both of its names.
pub(crate) fn installed() -> Result<TempDir, Failed> {
    let folder = tempfile::tempdir()?;
    for name in ["kubectl-opensdn", "kubectl_complete-opensdn"] {
        symlink(program("kubectl-opensdn")?, folder.path().join(name))?;
    }
    Ok(folder)
}

/// kubectl with nothing on PATH but the plugin, and nothing of the developer's.
fn kubectl(program: &Path, plugin: &TempDir, arguments: &[&str]) -> Result<Output, Failed> {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", plugin.path()).env("PATH", plugin.path()).args(arguments);
    Ok(command.output()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn kubectl_finds_the_plugin_and_hands_its_exit_code_on() -> Outcome {
    let program = Binaries::find(None).await?.program("kubectl")?;
    let plugin = installed()?;
    let output = kubectl(&program, &plugin, &["opensdn", "version", "--client"])?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("client "), "{}", text(&output.stdout));
    let output = kubectl(&program, &plugin, &["opensdn", "explain", "OSDN9999"])?;
    assert_eq!(output.status.code(), Some(2));
    let output = kubectl(&program, &plugin, &["plugin", "list"])?;
    let listed = text(&output.stdout);
    assert!(listed.contains("/kubectl-opensdn\n"), "{listed}{}", text(&output.stderr));
    Ok(())
}

/// What `kubectl __complete opensdn WORD...` offers, and the directive that ends it.
fn completed(
    program: &Path,
    plugin: &TempDir,
    words: &[&str],
) -> Result<(Vec<String>, u8), Failed> {
    let output = kubectl(program, plugin, &[&["__complete", "opensdn"], words].concat())?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer = text(&output.stdout);
    let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
    let directive = lines.pop().ok_or("kubectl said nothing")?;
    let directive = directive.strip_prefix(':').ok_or("the last line is the directive")?.parse()?;
    Ok((lines, directive))
}

/// Of cobra's directives: no file names of the shell's own.
const NO_FILES: u8 = 4;

#[tokio::test]
async fn kubectl_completes_commands_flags_and_values_of_the_plugin() -> Outcome {
    let program = Binaries::find(None).await?.program("kubectl")?;
    let plugin = installed()?;
    let ask = |words: &[&str]| completed(&program, &plugin, words);

    let (lines, directive) = ask(&[""])?;
    for command in ["validate", "policy", "explain", "version", "completion"] {
        let described = format!("{command}\t");
        assert!(lines.iter().any(|line| line.starts_with(&described)), "{command}: {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.starts_with("man")), "{lines:?}");
    assert_eq!(directive, NO_FILES);

    let (lines, _) = ask(&["vers"])?;
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (lines, _) = ask(&["explain", "OSDN4001"])?;
    assert_eq!(lines, ["OSDN4001\tno built-in policy has that name"]);
    let (lines, _) = ask(&["version", "--clie"])?;
    assert!(lines.iter().any(|line| line.starts_with("--client\t")), "{lines:?}");
    let (lines, _) = ask(&["version", "-o", "js"])?;
    assert!(lines.iter().any(|line| line.starts_with("json\t")), "{lines:?}");
    let (lines, directive) = ask(&["no-such-command", "x"])?;
    assert_eq!((lines.as_slice(), directive), (&[][..], NO_FILES));
    Ok(())
}

#[tokio::test]
async fn version_asks_the_cluster_as_whom_the_flags_say() -> Outcome {
    let sandbox = Shared::with_crds().await?;
    let program = sandbox.kubectl_path()?;
    let plugin = installed()?;
    let version = |kubeconfig: &Path, flags: &[&str]| -> Result<(Value, Option<i32>), Failed> {
        let kubeconfig = kubeconfig.display().to_string();
        let arguments = ["opensdn", "version", "-o", "json", "--kubeconfig", &kubeconfig];
        let output = kubectl(&program, &plugin, &[&arguments, flags].concat())?;
        Ok((serde_json::from_slice(&output.stdout)?, output.status.code()))
    };

    let (answer, code) = version(&sandbox.kubeconfig(), &[])?;
    assert_eq!(code, Some(0), "{answer}");
    assert_eq!(answer["server"]["supported"], true, "{answer}");
    assert_eq!(answer["server"]["webhook"]["state"], "absent", "{answer}");

    let (answer, code) = version(&sandbox.kubeconfig(), &["--as", "nobody", "--as-group", "none"])?;
    assert_eq!(code, Some(0), "{answer}");
    assert_eq!(answer["server"]["webhook"]["state"], "unknown", "{answer}");
    let reason = answer["server"]["webhook"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("\"nobody\""), "{answer}");

    let bob = sandbox.kubeconfig_for(&User::new("bob"))?;
    let (answer, _) = version(&bob, &[])?;
    let reason = answer["server"]["webhook"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("\"bob\""), "{answer}");

    // The address and authority of the cluster, without a kubeconfig's user.
    let ca = plugin.path().join("ca.pem");
    std::fs::write(&ca, sandbox.ca_pem())?;
    let ca = ca.display().to_string();
    let flags = ["--server", sandbox.api_server_url(), "--certificate-authority", &ca];
    let output = kubectl(
        &program,
        &plugin,
        &[&["opensdn", "version", "-o", "json", "--token", "no"], &flags[..]].concat(),
    )?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(answer["problem"]["code"], "unauthenticated", "{answer}");
    assert_eq!(output.status.code(), Some(3));
    Ok(())
}
