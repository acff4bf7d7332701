//! The author's guide, followed literally: every command of its page, in order, in one folder, with
//! the real kubectl, our plugin, and a cluster with the product. Deliberately not here: the book's
//! links (`book`).

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opensdn_testing::product::Installation;
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::Sandbox;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/author.md");

/// One command of a page, and what the page shows of its answer.
#[derive(Debug, Default)]
struct Step {
    command: String,
    shown: Vec<String>,
    must_fail: bool,
}

/// The steps of all blocks of the kind `console`; in one that is `refused` the last command fails.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```console") else { continue };
        let mut here_document = false;
        for line in lines.by_ref().take_while(|line| *line != "```") {
            if here_document {
                let step = steps.last_mut().unwrap();
                step.command = format!("{}\n{line}", step.command);
                here_document = line != "END";
            } else if let Some(command) = line.strip_prefix("$ ") {
                here_document = command.contains("<<'END'");
                steps.push(Step { command: command.to_owned(), ..Step::default() });
            } else {
                steps.last_mut().unwrap().shown.push(line.trim().to_owned());
            }
        }
        steps.last_mut().unwrap().must_fail = kind == ",refused";
    }
    steps
}

/// The first shown line missing in the answer, in this order; `...` matches any lines.
fn missing<'a>(shown: &'a [String], answer: &str) -> Option<&'a str> {
    let mut rest = answer.lines();
    let mut is_there = |shown: &str| shown == "..." || rest.any(|line| line.contains(shown));
    shown.iter().map(String::as_str).find(|shown| !is_there(shown))
}

/// A shell in which nothing is found but what the guide asks for.
struct Reader {
    folder: tempfile::TempDir,
    path: String,
    kubeconfig: PathBuf,
}

impl Reader {
    fn new(sandbox: &Sandbox) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("bin");
        std::fs::create_dir(&programs).unwrap();
        symlink(program("kubectl-opensdn").unwrap(), programs.join("kubectl-opensdn")).unwrap();
        symlink(sandbox.kubectl_path().unwrap(), programs.join("kubectl")).unwrap();
        let outer = std::env::var("PATH").unwrap();
        let path = format!("{}:{outer}", programs.display());
        Self { folder, path, kubeconfig: sandbox.kubeconfig() }
    }

    /// Runs one command in the folder that the one before ended in.
    fn run(&self, step: &Step) {
        let here = self.folder.path().join("here");
        let script = format!(
            "cd \"$(cat '{0}' 2>/dev/null || echo .)\" || exit 99\n{1}\ncode=$?\npwd > '{0}'\nexit $code",
            here.display(),
            step.command
        );
        let kept = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1\n{script}")])
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("XDG_CACHE_HOME", kept("policy-author-cache"))
            .env("CARGO_TARGET_DIR", kept("policy-author"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let answer = String::from_utf8_lossy(&output.stdout);
        let failed = !output.status.success();
        assert_eq!(failed, step.must_fail, "$ {}\n{answer}", step.command);
        let missing = missing(&step.shown, &answer);
        assert_eq!(missing, None, "the page shows this, but:\n$ {}\n{answer}", step.command);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authors_guide_leads_from_nothing_to_a_refused_object() {
    let sandbox = Sandbox::builder().only_api_server().start().await.unwrap();
    let _product = Installation::built().unwrap().install(&sandbox).await.unwrap();
    let steps = steps(&std::fs::read_to_string(PAGE).unwrap());
    assert!(steps.len() >= 12, "{steps:#?}");
    let reader = Reader::new(&sandbox);
    for step in &steps {
        tokio::task::block_in_place(|| reader.run(step));
    }
}
