//! `completion`: a script for a shell, and the shim by which kubectl completes our commands. What
//! the shim answers is in `completion.rs`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::aot::{Generator, Shell, generate};
use clap_complete_nushell::Nushell;

use crate::completion::{PROGRAM, WORD};
use crate::exit::{Exit, Failure};
use crate::plugins;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Complete `kubectl opensdn <TAB>`, with kubectl's own completion set up
  kubectl opensdn completion kubectl --install

  # The same in a folder of PATH that you may write to
  kubectl opensdn completion kubectl --install ~/.local/bin

  # Complete kubectl-opensdn when it is called by its own name
  source <(kubectl opensdn completion bash)

  # The same for Nushell, from its next start on
  kubectl opensdn completion nushell | save ($nu.user-autoload-dirs.0 | path join opensdn.nu)";

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completion {
    /// For whom.
    #[arg(value_enum, value_name = "FOR")]
    for_whom: ForWhom,
    /// Write kubectl's shim into this folder, by default that of kubectl-opensdn on PATH.
    #[arg(long, value_name = "DIR", num_args = 0..=1, value_hint = ValueHint::DirPath)]
    install: Option<Option<PathBuf>>,
    /// Replace a file that is not ours.
    #[arg(short, long, requires = "install")]
    yes: bool,
}

/// Who completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ForWhom {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
    Nushell,
    /// kubectl 1.26 or newer, in whichever shell it completes.
    Kubectl,
}

impl ForWhom {
    /// The shell's script; none for kubectl, which asks for candidates one by one.
    fn script(self) -> Option<Vec<u8>> {
        match self {
            Self::Bash => Some(script(Shell::Bash)),
            Self::Zsh => Some(script(Shell::Zsh)),
            Self::Fish => Some(script(Shell::Fish)),
            Self::Powershell => Some(script(Shell::PowerShell)),
            Self::Elvish => Some(script(Shell::Elvish)),
            Self::Nushell => Some(script(Nushell)),
            Self::Kubectl => None,
        }
    }
}

/// clap_complete panics where its stream fails, so it gets one that cannot.
fn script(shell: impl Generator) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = crate::parse::command().name("kubectl-opensdn");
    generate(shell, &mut command, "kubectl-opensdn", &mut script);
    script
}

/// What kubectl runs. It finds the program by PATH, so that it outlives an upgrade by krew.
fn shim() -> String {
    format!("#!/bin/sh\nexec kubectl-opensdn {WORD} \"$@\"\n")
}

impl Completion {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        match (self.for_whom.script(), &self.install) {
            (Some(script), None) => ui.write(|out| out.write_all(&script))?,
            (None, None) => {
                ui.write(|out| out.write_all(shim().as_bytes()))?;
                ui.hint(&format!("as an executable file {PROGRAM} on PATH, or: --install"));
            }
            (None, Some(folder)) => self.install(folder.as_deref(), ui)?,
            (Some(_), Some(_)) => {
                let message = "--install has no effect: only kubectl's shim is installed";
                let hint = "write the script where your shell looks for completions";
                return Err(Failure::usage(message, hint));
            }
        }
        Ok(Exit::Done)
    }

    fn install(&self, folder: Option<&Path>, ui: &mut Ui) -> Result<(), Failure> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => beside_program()?,
        };
        let path = folder.join(PROGRAM);
        let shim = shim();
        // A link to this program answers the same.
        let ours = |text: &[u8]| text == shim.as_bytes() || text.starts_with(b"\x7fELF");
        // Of a program of hundreds of MiB its beginning is enough.
        match beginning(&path, shim.len() + 1) {
            Ok(text) if text == shim.as_bytes() => {
                ui.note(&format!("{} is there already", path.display()));
                return Ok(());
            }
            Ok(text) if !ours(&text) && !self.yes => {
                ui.confirm(&format!("{} is not ours; replace it", path.display()))?;
            }
            _ => {}
        }
        write(&path, &shim).map_err(|error| unwritable(&path, &error))?;
        ui.note(&format!("wrote {}", path.display()));
        let on_path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&on_path).any(|one| one == folder) {
            ui.warn(&format!("{} is not in PATH, so kubectl does not find it", folder.display()));
        }
        Ok(())
    }
}

/// The folder in which kubectl finds us: there it looks for the shim too.
fn beside_program() -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ours = plugins::found_in(&path).into_iter().find(|external| external.words.is_empty());
    ours.and_then(|ours| ours.path.parent().map(Path::to_owned)).ok_or_else(|| {
        let message = "kubectl-opensdn is not on PATH, so there is no folder to install beside it";
        Failure::usage(message, "name the folder: --install DIR")
    })
}

/// As many bytes of a file as are there, and at most so many.
fn beginning(path: &Path, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A new file that takes the place of the old one at once: kubectl may be running it.
fn write(path: &Path, shim: &str) -> std::io::Result<()> {
    let new = path.with_file_name(format!("{PROGRAM}.new"));
    std::fs::write(&new, shim)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
    }
    std::fs::rename(&new, path)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("{} cannot be written", path.display());
    let hint = "name a folder of PATH that you may write to: --install DIR";
    Failure::new(Exit::Usage, "unwritable-output", message, hint).because(error)
}
