//! Modules made to end what looks at them, and the plugin, which looks at what its user was sent.
//! Deliberately not here: the webhook's compiler (`webhook_compiler`), and the bounds themselves,
//! which are tested in the host.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use opensdn_policy_build::component_of;
use opensdn_testing::programs::program;
use opensdn_testing::{Failed, Outcome};

/// A module and what is said of it.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) said: &'static str,
}

/// Each ended a process, or kept a thread of it without limit.
pub(crate) fn hostile_modules() -> Result<Vec<Hostile>, Failed> {
    let chain = |before: String| format!(r#"{{"$ref":"{before}"}}"#);
    let double =
        |before: String| format!(r#"{{"allOf":[{{"$ref":"{before}"}},{{"$ref":"{before}"}}]}}"#);
    let pointer = "(drop (memory.grow (i32.const 4)))
        (memory.fill (i32.const 131072) (i32.const 47) (i32.const 200000))
        (i32.store (i32.const 1300) (i32.const 131072))
        (i32.store (i32.const 1304) (i32.const 200000))";
    let hostile =
        |name, bytes: Result<Vec<u8>, Failed>, said| Ok(Hostile { name, bytes: bytes?, said });
    [
        hostile("long-chain", with_schema(&definitions(20_000, chain)), "32768 are possible"),
        hostile("chain", with_schema(&definitions(900, chain)), "deeper than 64 levels"),
        hostile("doubling", with_schema(&definitions(60, double)), "more than 10000 values"),
        hostile("pointer", guest("", pointer), "a JSON Pointer may have 256 bytes"),
        hostile("crash", guest("", "unreachable"), "cannot describe itself"),
        hostile("loop", guest("", "(loop $again (br $again))"), "cannot describe itself"),
    ]
    .into_iter()
    .collect()
}

/// A module that describes itself so.
fn guest(data: &str, describe: &str) -> Result<Vec<u8>, Failed> {
    let text = include_str!("../../sdk/host/tests/guests/policy.wat");
    let text = text.replace("(; DATA ;)", data).replace("(; DESCRIBE ;)", describe);
    Ok(component_of(&wat::parse_str(text)?)?)
}

fn with_schema(schema: &str) -> Result<Vec<u8>, Failed> {
    let escaped: String = schema.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let (length, pages) = (schema.len(), schema.len() / (64 << 10) + 1);
    let describe = format!(
        "(drop (memory.grow (i32.const {pages})))
        (memory.init $schema (i32.const 131072) (i32.const 0) (i32.const {length}))
        (i32.store (i32.const 1048) (i32.const 131072))
        (i32.store (i32.const 1052) (i32.const {length}))"
    );
    guest(&format!("(data $schema \"{escaped}\")"), &describe)
}

/// What a terminal would obey: it clears itself, takes a title, conceals text, overwrites a line, turns it around.
const OBEYED: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[8mhidden\u{9b}2K\rok  signed\u{202e}\u{200b}";

/// Where the guest keeps its texts: the summary, then title, explanation and hint of its message.
const TEXTS: [usize; 4] = [1016, 1212, 1220, 1228];

/// A good module some of whose texts a terminal would obey, those on who made it as well.
fn with_texts(text: &str, places: &[usize]) -> Result<Vec<u8>, Failed> {
    let escaped: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let store = |at: usize| {
        let (text, length) = (at, at + 4);
        let bytes = escaped.len() / 3;
        format!(
            "(i32.store (i32.const {text}) (i32.const 3000)) (i32.store (i32.const {length}) (i32.const {bytes}))"
        )
    };
    let stores: String = places.iter().copied().map(store).collect();
    let mut bytes = guest(&format!("(data (i32.const 3000) \"{escaped}\")"), &stores)?;
    let text = [&[u8::try_from(text.len())?], text.as_bytes()].concat();
    let producers = [&b"\x09producers\x01\x08language\x01"[..], &text, &text].concat();
    bytes.extend([0, u8::try_from(producers.len())?]);
    bytes.extend(producers);
    Ok(bytes)
}

/// Definitions, each made of the name of the one before.
fn definitions(count: usize, one: impl Fn(String) -> String) -> String {
    let mut text = r#"{"$defs":{"d0":{}"#.to_owned();
    for number in 1..=count {
        let before = one(format!("#/$defs/d{}", number - 1));
        text.push_str(&format!(",\"d{number}\":{before}"));
    }
    format!("{text}}},\"$ref\":\"#/$defs/d{count}\"}}")
}

/// A small module that takes the more memory to compile, by the square, the more loops it has
/// within each other: each hands on as many locals.
pub(crate) fn nested_loops(count: usize) -> Result<Vec<u8>, Failed> {
    let mut text = format!("(component (core module (func (local {})", "i32 ".repeat(count));
    text.push_str(&"loop ".repeat(count));
    for local in 0..count {
        text.push_str(&format!("local.get {local} i32.const 1 i32.add local.set {local} "));
    }
    for local in 0..count {
        text.push_str(&format!("local.get {local} br_if 0 end "));
    }
    Ok(wat::parse_str(text + ")))")?)
}

/// A module of types within each other, each of which names the one before: who followed them by
/// recursion would overflow a stack.
fn deep_types(count: usize) -> Result<Vec<u8>, Failed> {
    let mut text = "(component (type (list u8))".to_owned();
    for number in 0..count {
        text.push_str(&format!(" (type (list {number}))"));
    }
    text.push_str(&format!(
        " (core module $m (memory (export \"m\") 1) (func (export \"f\") (param i32 i32))
            (func (export \"r\") (param i32 i32 i32 i32) (result i32) unreachable))
          (core instance $i (instantiate $m))
          (func (export \"describe\") (param \"it\" {count}) (canon lift (core func $i \"f\")
            (memory $i \"m\") (realloc (func $i \"r\")))))"
    ));
    Ok(wat::parse_str(text)?)
}

/// Generous on a slow machine.
const LONG: Duration = Duration::from_secs(60);
/// The mebibytes that the plugin's compiler may take here.
const COMPILER_MEBIBYTES: &str = "64";

fn plugin(folder: &Path, arguments: &[&str]) -> Result<Command, Failed> {
    let mut command = Command::new(program("kubectl-opensdn")?);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_clear().env("HOME", "/nonexistent").env("XDG_CACHE_HOME", folder.join("cache"));
    command.env("KUBECTL_OPENSDN_COMPILER_MEBIBYTES", COMPILER_MEBIBYTES);
    Ok(command)
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Output, Failed> {
    Ok(plugin(folder, arguments)?.output()?)
}

fn text(bytes: &[u8]) -> String {
    // Lines are broken to the width of a terminal.
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A folder with cases and a manifest to judge.
fn project() -> Result<tempfile::TempDir, Failed> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("cases"))?;
    fs::write(
        folder.path().join("cases/case.yaml"),
        "object: {apiVersion: v1, kind: Thing, metadata: {name: x}}\nexpect: {findings: []}\n",
    )?;
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\n";
    fs::write(folder.path().join("object.yaml"), manifest)?;
    Ok(folder)
}

/// All that the webhook's compiler refuses, and what only the plugin does to a module: it looks into the
/// bytes for who made it.
fn hostile_to_the_plugin() -> Result<Vec<Hostile>, Failed> {
    let mut hostile = hostile_modules()?;
    let (name, said) = ("too-large", "takes more than the 64 MiB of the compiler");
    hostile.push(Hostile { name, bytes: nested_loops(1_500)?, said });
    let said = "type nesting is too deep";
    hostile.push(Hostile { name: "deep-types", bytes: deep_types(100_000)?, said });
    Ok(hostile)
}

#[test]
fn the_plugin_says_why_a_hostile_module_is_no_policy_and_ends_as_ever() -> Outcome {
    let folder = project()?;
    let folder = folder.path();
    for Hostile { name, bytes, said } in hostile_to_the_plugin()? {
        let file = format!("{name}.wasm");
        fs::write(folder.join(&file), bytes)?;
        let inspected = run(folder, &["policy", "inspect", &file])?;
        assert_eq!(inspected.status.code(), Some(1), "{name}: {inspected:?}");
        let shown = text(&inspected.stdout);
        assert!(shown.contains(said) && shown.contains(&file), "{name}: {shown}");
        for arguments in [
            &["policy", "test", &file, "--cases", "cases"][..],
            &["policy", "run", &file, "-f", "object.yaml"],
            &["policy", "explain", &file],
        ] {
            let refused = run(folder, arguments)?;
            assert_eq!(refused.status.code(), Some(2), "{name}: {arguments:?}: {refused:?}");
            let shown = text(&refused.stderr);
            assert!(shown.contains(said) && shown.contains(&file), "{name}: {shown}");
        }
    }
    Ok(())
}

#[test]
fn so_it_does_where_it_has_no_cache_and_where_manifests_are_validated() -> Outcome {
    let folder = project()?;
    let folder = folder.path();
    for Hostile { name, bytes, said } in hostile_to_the_plugin()? {
        let file = format!("{name}.wasm");
        fs::write(folder.join(&file), &bytes)?;
        let validated = run(folder, &["validate", "object.yaml", "--policy", &file])?;
        assert_eq!(validated.status.code(), Some(2), "{name}: {validated:?}");
        let shown = text(&validated.stderr);
        // What the bytes show is said by those commands that are about one policy.
        let said = if name == "deep-types" { "is no policy" } else { said };
        assert!(shown.contains(said) && shown.contains(&file), "{name}: {shown}");

        let mut inspect = plugin(folder, &["policy", "inspect", &file])?;
        inspect.env_remove("HOME").env_remove("XDG_CACHE_HOME");
        let inspected = inspect.output()?;
        assert_eq!(inspected.status.code(), Some(1), "{name}: {inspected:?}");
    }
    // One that is none of that is loaded and judges, from a folder that is gone when it does.
    let good = opensdn_policies::find("even-quorum").ok_or("it is built in")?;
    // An empty custom section makes it another module, which is not part of the program.
    fs::write(folder.join("good.wasm"), [good.bytes, &[0, 2, 1, b'0']].concat())?;
    let mut inspect = plugin(folder, &["policy", "inspect", "good.wasm"])?;
    inspect.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    inspect.env_remove("KUBECTL_OPENSDN_COMPILER_MEBIBYTES");
    let inspected = inspect.output()?;
    assert_eq!(inspected.status.code(), Some(0), "{inspected:?}");
    assert!(text(&inspected.stdout).contains("even-quorum"), "{inspected:?}");
    Ok(())
}

/// The child of a process that sets itself limits, when it ends with its parent.
#[cfg(target_os = "linux")]
fn limited_child(parent: u32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let all = fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let of_threads = all.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let text: String = children.into_iter().chain(of_threads).collect::<Vec<_>>().join(" ");
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).find(|pid: &i32| {
        // Of what it sets for itself before it has limits, this is the last.
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
        score.is_ok_and(|score| score.trim() == "1000")
    })
}

#[cfg(target_os = "linux")]
#[test]
fn what_looks_at_a_module_for_the_plugin_ends_when_the_plugin_is_killed() -> Outcome {
    use rustix::process::{Pid, Signal, kill_process};

    let folder = project()?;
    let folder = folder.path();
    fs::write(folder.join("slow.wasm"), nested_loops(1_500)?)?;
    let mut inspect = plugin(folder, &["policy", "inspect", "slow.wasm"])?;
    inspect.env("KUBECTL_OPENSDN_COMPILER_MEBIBYTES", "4096");
    let mut inspect = inspect.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let started = Instant::now();
    let child = loop {
        if let Some(child) = limited_child(inspect.id()) {
            break Pid::from_raw(child).ok_or("no process has that number")?;
        }
        assert_eq!(inspect.try_wait()?, None, "it ended before its child was seen");
        assert!(started.elapsed() < LONG, "it has no child that restricts itself");
    };
    // So that it does not end by itself.
    kill_process(child, Signal::STOP)?;
    inspect.kill()?;
    inspect.wait()?;
    let is_gone = || match fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())) {
        // It may wait for its new parent to ask for its status.
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(_) => true,
    };
    let killed = Instant::now();
    while !is_gone() {
        if killed.elapsed() > LONG {
            let _ended = kill_process(child, Signal::KILL);
            return Err("the child outlived the plugin".into());
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

#[test]
fn nothing_that_a_module_says_of_itself_is_obeyed_by_a_terminal() -> Outcome {
    let folder = project()?;
    let folder = folder.path();
    // What has to be one line is refused, and the reason quotes it.
    fs::write(folder.join("named.wasm"), with_texts(OBEYED, &TEXTS)?)?;
    fs::write(folder.join("texts.wasm"), with_texts(OBEYED, &TEXTS[2..])?)?;
    fs::write(folder.join("thing.yaml"), "{apiVersion: v1, kind: Thing, metadata: {name: x}}")?;
    let judged = &["validate", "object.yaml", "--policy", "texts.wasm"][..];
    for arguments in [
        &["policy", "inspect", "texts.wasm"][..],
        &["policy", "explain", "texts.wasm"],
        &["policy", "test", "texts.wasm", "--cases", "cases"],
        &["policy", "run", "texts.wasm", "-f", "thing.yaml"],
        &["policy", "run", "texts.wasm", "-f", "thing.yaml", "-o", "yaml"],
        &["policy", "inspect", "texts.wasm", "-o", "json"],
        judged,
        &["policy", "inspect", "named.wasm"],
        &["policy", "explain", "named.wasm"],
    ] {
        // As on a terminal.
        let arguments = [&["--color", "always"], arguments].concat();
        let ran = run(folder, &arguments)?;
        let is_refused = arguments.contains(&"named.wasm");
        let may_end_with: &[i32] = if is_refused { &[1, 2] } else { &[0, 1] };
        let code = ran.status.code().unwrap_or_default();
        assert!(may_end_with.contains(&code), "{arguments:?}: {ran:?}");
        let shown = String::from_utf8([ran.stdout, ran.stderr].concat())?;
        let text = without_styles(&shown);
        let obeyed = text.chars().find(|one| one.is_control() && *one != '\n');
        assert_eq!(obeyed, None, "{arguments:?}: {shown:?}");
        assert!(!text.contains(['\u{202e}', '\u{200b}']), "{arguments:?}: {shown:?}");
        let is_quoted = arguments.contains(&"inspect") || arguments.contains(&"explain");
        assert!(!is_quoted || text.contains("owned"), "{arguments:?}: {shown:?}");
    }
    Ok(())
}

/// The text without sequences that set a colour, or bold, or faint.
fn without_styles(shown: &str) -> String {
    let mut parts = shown.split("\u{1b}[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('m') {
            Some((style, rest))
                if style.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
                    && style != "8" =>
            {
                text.push_str(rest);
            }
            _ => text.extend(["\u{1b}", part]),
        }
    }
    text
}
