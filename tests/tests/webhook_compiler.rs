//! Modules are compiled by a process of their own, which is the webhook's program again: what
//! it takes and leaves, and that a webhook over the wire uses it. What becomes of a compiler that
//! crashes is tested beside the webhook's loader, which starts it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use opensdn_policies::BuiltIn;
use opensdn_policy_host::{Cache, Digest, Engine, Policy};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::send;
use opensdn_testing::product::Installation;
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::json;

use crate::hostile_modules::{Hostile, hostile_modules, nested_loops};

fn compile(module: &[u8], folder: &Path) -> Result<Output, Failed> {
    compile_within("256", module, folder)
}

/// With so many mebibytes of memory.
fn compile_within(mebibytes: &str, module: &[u8], folder: &Path) -> Result<Output, Failed> {
    let mut compiler = Command::new(program("opensdn-webhook")?)
        .arg("compile-module")
        .arg(folder)
        .arg(mebibytes)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // One that has ended already says more by how it ended.
    let _written = compiler.stdin.take().ok_or("it reads")?.write_all(module);
    Ok(compiler.wait_with_output()?)
}

#[tokio::test]
async fn the_compiler_puts_the_code_into_the_cache_and_says_nothing() -> Outcome {
    let folder = tempfile::tempdir()?;
    let BuiltIn { bytes, .. } = opensdn_policies::find("plaintext").ok_or("it is built in")?;
    let output = compile(bytes, &folder.path().join("cache"))?;
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    // The webhook's engine, which has room for more than the compiler's, takes it.
    let (engine, cache) = (Engine::start(64)?, Cache::open(folder.path().join("cache"))?);
    let policy = Policy::load_compiled(&engine, Digest::of(bytes), &cache).await?;
    assert_eq!(policy.ok_or("it is there")?.metadata().name, "plaintext");
    Ok(())
}

#[test]
fn what_is_no_module_is_refused_and_leaves_nothing() -> Outcome {
    let folder = tempfile::tempdir()?;
    let output = compile(b"\0asm and no more", folder.path())?;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(fs::read_dir(folder.path())?.count(), 0);
    Ok(())
}

#[test]
fn a_module_that_describes_itself_wrongly_is_refused_with_the_reason_and_leaves_nothing() -> Outcome
{
    for Hostile { name, bytes, said } in hostile_modules()? {
        let folder = tempfile::tempdir()?;
        let output = compile(&bytes, folder.path())?;
        assert_eq!(output.status.code(), Some(3), "{name}: {output:?}");
        let reason = String::from_utf8(output.stderr)?;
        assert!(reason.contains(said) && reason.len() < 1_000, "{name}: {reason}");
        assert_eq!(fs::read_dir(folder.path())?.count(), 0, "{name}");
    }
    Ok(())
}

#[test]
fn the_compiler_dies_of_its_own_limit_of_memory_and_leaves_nothing() -> Outcome {
    let folder = tempfile::tempdir()?;
    let output = compile_within("64", &nested_loops(1_500)?, folder.path())?;
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    assert!(said.contains("memory allocation of"), "{:?}: {said}", output.status);
    assert_eq!(fs::read_dir(folder.path())?.count(), 0);
    Ok(())
}

#[test]
fn a_folder_that_cannot_be_used_is_reported() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("file");
    fs::write(&file, "")?;
    let output = compile(b"", &file)?;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    assert!(said.contains(&format!("use {}", file.display())), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_has_its_policies_compiled_by_other_processes() -> Outcome {
    let (folder, modules) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let broken: &[u8] = b"\0asm and no more";
    fs::write(modules.path().join("broken.wasm"), broken)?;
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let product = Installation::built()?
        .cache_folder(folder.path().join("cache"))
        .argument(format!("--policy-folder={}", modules.path().display()))
        .install(&sandbox)
        .await?;
    let id = product.process_id(0).ok_or("it runs")?;
    assert!(ticks_of_children(id)? > 0, "what compiled has used no processor");

    // The webhook that asked says why it was refused.
    let module =
        json!({"folder": {"path": "broken.wasm"}, "digest": Digest::of(broken).to_string()});
    let policy = json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "broken"}, "spec": {"module": module},
    });
    // What takes too long to compile is not refused, so a busy machine may take it once.
    let is_refused = async || {
        let said = send(&sandbox, &["apply"], &policy).await;
        let reason = "not a WebAssembly component that can be compiled";
        said.is_ok_and(|said| !said.ok && said.err.contains(reason))
    };
    eventually("it is refused", is_refused).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modules_that_cannot_be_compiled_or_checked_are_refused_and_the_webhook_lives_on() -> Outcome
{
    let (folder, modules) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut hostile = hostile_modules()?;
    let (name, said) = ("too-large", "to compile the module takes more than the 64 MiB");
    hostile.push(Hostile { name, bytes: nested_loops(1_500)?, said });
    for Hostile { name, bytes, .. } in &hostile {
        fs::write(modules.path().join(format!("{name}.wasm")), bytes)?;
    }
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let product = Installation::built()?
        .without_policies()
        .cache_folder(folder.path().join("cache"))
        .argument(format!("--policy-folder={}", modules.path().display()))
        .argument("--compiler-mebibytes=64")
        .install(&sandbox)
        .await?;
    let id = product.process_id(0).ok_or("it runs")?;
    for Hostile { name, bytes, said } in &hostile {
        let file = format!("{name}.wasm");
        let module = json!({"folder": {"path": file}, "digest": Digest::of(bytes).to_string()});
        let policy = json!({
            "apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
            "metadata": {"name": name}, "spec": {"module": module},
        });
        // A dry run stores nothing, and is judged as any other.
        let is_refused = async || {
            let answer = send(&sandbox, &["apply", "--dry-run=server"], &policy).await;
            answer.is_ok_and(|answer| !answer.ok && answer.err.contains(said))
        };
        eventually(&format!("{name} is refused: {said}"), is_refused).await;
    }
    assert_eq!(product.process_id(0), Some(id), "it is the same process");
    Ok(())
}

/// What the children that have ended and were waited for have used, in ticks of the clock.
fn ticks_of_children(process: u32) -> Result<u64, Failed> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // Behind the name, which may hold anything: cutime and cstime are the 16th and 17th field.
    let (_, fields) = stat.rsplit_once(") ").ok_or("a name in parentheses")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let field = |number: usize| fields.get(number - 3).ok_or("a field").map(|text| text.parse());
    let (user, system): (u64, u64) = (field(16)??, field(17)??);
    Ok(user + system)
}
