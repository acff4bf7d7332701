//! The loader with compilers that fail, and with nothing for one to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use opensdn_policies::BuiltIn;
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;

/// Generous on a slow machine.
const LONG: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn std::error::Error>>;

struct Setting {
    folder: TempDir,
    engine: Engine,
    module: &'static BuiltIn,
}

impl Setting {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let module = opensdn_policies::find("unversioned-image").ok_or("it is built in")?;
        Ok(Self { folder: tempfile::tempdir()?, engine: Engine::start(1)?, module })
    }

    fn cache(&self) -> Result<Cache, Box<dyn std::error::Error>> {
        Ok(Cache::open(self.folder.path().join("cache"))?)
    }

    /// With a compiler that is another program.
    fn loader(&self, program: impl Into<PathBuf>) -> Result<Loader, Box<dyn std::error::Error>> {
        let cache = self.cache()?;
        let compiler = Compiler::new(program.into(), &cache, 256);
        Ok(Loader::new(self.engine.clone(), Some(cache), 1 << 30, Some(compiler)))
    }

    /// A compiler that takes note of each run, reads the module and then does this.
    fn script(&self, end: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
        self.script_with("/dev/null", end)
    }

    /// The same, with the module in a file whose name ends with the number of the process.
    fn script_that_keeps_the_module(
        &self,
        end: &str,
    ) -> Result<PathBuf, Box<dyn std::error::Error>> {
        self.script_with(&format!("{}.$$", self.runs().display()), end)
    }

    fn script_with(&self, module: &str, end: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
        let path = self.folder.path().join("compiler");
        let runs = self.runs();
        let text = format!("#!/bin/sh\necho run >> {}\ncat > {module}\n{end}\n", runs.display());
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        Ok(path)
    }

    fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// What two loads of the module say, and how often the compiler ran.
    async fn twice(&self, loader: &Loader) -> Result<(LoaderError, usize), &'static str> {
        self.twice_of(loader, self.module.bytes).await
    }

    async fn twice_of(
        &self,
        loader: &Loader,
        module: &[u8],
    ) -> Result<(LoaderError, usize), &'static str> {
        let load = async || loader.load(module.into(), None).await.err();
        let first = load().await.ok_or("it is loaded")?;
        let second = load().await.ok_or("it is loaded")?;
        let runs = fs::read_to_string(self.runs()).unwrap_or_default().lines().count();
        if first == second { Ok((second, runs)) } else { Err("they say different things") }
    }
}

#[tokio::test]
async fn a_module_on_which_the_compiler_crashes_is_refused_with_the_reason_and_never_compiled_again()
-> Outcome {
    for (end, said) in [
        ("exit 1", "the compiler ended with exit status: 1 on this module"),
        ("kill -ABRT $$", "the compiler ended with signal: 6"),
        ("echo 'it imports a clock' >&2; exit 3", "it imports a clock"),
        ("echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$", "more than the 256 MiB"),
        ("echo 'not a component' >&2; exit 6", "memory ran out"),
        ("kill -XCPU $$", "of processor time"),
    ] {
        let setting = Setting::new()?;
        let loader = setting.loader(setting.script(end)?)?;
        let (error, runs) = setting.twice(&loader).await?;
        assert!(error.is_final(), "{end}");
        assert!(error.to_string().contains(said), "{end}: {error}");
        assert_eq!(runs, 1, "{end}");
        assert_eq!(fs::read_dir(setting.folder.path().join("cache"))?.count(), 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_compiler_that_was_killed_from_outside_says_nothing_of_the_module() -> Outcome {
    for end in ["kill -KILL $$", "kill -TERM $$", "echo 'no cache' >&2; exit 4"] {
        let setting = Setting::new()?;
        let loader = setting.loader(setting.script(end)?)?;
        let (error, runs) = setting.twice(&loader).await?;
        assert!(!error.is_final(), "{end}: {error}");
        assert_eq!(runs, 2, "{end}: it is tried again");
    }
    Ok(())
}

#[tokio::test]
async fn of_a_full_disk_is_said_where_to_free_space_and_of_missing_memory_which_flag() -> Outcome {
    let full = "echo 'write code: No space left on device' >&2; exit 5";
    let setting = Setting::new()?;
    let (error, runs) =
        setting.twice_of(&setting.loader(setting.script(full)?)?, &other_module(&setting)).await?;
    assert!(!error.is_final() && runs == 2, "it is tried again: {error}");
    let problem = error.into_problem();
    let folder = setting.folder.path().join("cache").display().to_string();
    assert!(
        problem.hint.starts_with("free space") && problem.hint.contains(&folder),
        "{problem:?}"
    );
    assert!(!problem.hint.contains("nothing needs to be done"), "{problem:?}");

    // A limit of the system on the size of files ends a process by a signal.
    let setting = Setting::new()?;
    let (error, runs) = {
        let loader = setting.loader(setting.script("kill -XFSZ $$")?)?;
        setting.twice_of(&loader, &other_module(&setting)).await?
    };
    assert!(!error.is_final() && runs == 2, "it is tried again: {error}");
    assert!(error.to_string().contains("`ulimit -f`"), "{error}");

    let setting = Setting::new()?;
    let (error, _) = setting.twice(&setting.loader(setting.script("exit 6")?)?).await?;
    let problem = error.into_problem();
    assert!(problem.hint.contains("--compiler-mebibytes"), "{problem:?}");
    assert!(problem.message.contains("256 MiB"), "{problem:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_built_in_is_loaded_though_the_disk_is_full() -> Outcome {
    let setting = Setting::new()?;
    let full = "echo 'write code: No space left on device' >&2; exit 5";
    let loader = setting.loader(setting.script(full)?)?;
    let policy = loader.load(setting.module.bytes.into(), None).await?;
    assert_eq!(policy.metadata().name, setting.module.name);
    assert!(fs::read_dir(setting.folder.path().join("cache"))?.next().is_none(), "nothing is left");
    Ok(())
}

#[tokio::test]
async fn without_a_process_for_the_compiler_nothing_is_compiled_in_this_one() -> Outcome {
    let setting = Setting::new()?;
    let loader = setting.loader("/nowhere/opensdn-webhook")?;
    let (error, _) = setting.twice(&loader).await?;
    assert!(!error.is_final());
    assert!(error.to_string().contains("could not be started"), "{error}");
    Ok(())
}

#[tokio::test]
async fn without_a_compiler_only_what_is_built_in_is_compiled_and_it_is_said_what_to_set() -> Outcome
{
    let setting = Setting::new()?;
    for (cache, said) in [(None, "--cache-folder"), (Some(setting.cache()?), "its log says")] {
        let loader = Loader::new(setting.engine.clone(), cache, 1 << 30, None);
        let error = loader.load(other_module(&setting).into(), None).await.err();
        let error = error.ok_or("it was compiled in this process")?;
        assert!(error.is_final(), "{error}");
        let problem = error.into_problem();
        assert!(problem.hint.contains(said), "{problem:?}");
        loader.load(setting.module.bytes.into(), None).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_in_the_cache_needs_no_compiler() -> Outcome {
    let setting = Setting::new()?;
    Policy::precompile(&setting.engine, setting.module.bytes.to_vec(), &setting.cache()?).await?;
    let loader = setting.loader("/bin/false")?;
    let loaded = loader.load(setting.module.bytes.into(), None).await;
    assert!(loaded?.is_from_cache());
    let found = loader.find(Digest::of(setting.module.bytes)).await;
    assert!(found.ok_or("its bytes are not needed")??.is_from_cache());
    Ok(())
}

/// A module from outside, which no other is.
fn other_module(setting: &Setting) -> Vec<u8> {
    // An empty custom section makes it another module.
    [setting.module.bytes, &[0, 2, 1, b'0']].concat()
}

#[tokio::test]
async fn what_is_known_and_what_is_built_in_wait_for_no_other_module() -> Outcome {
    let setting = Setting::new()?;
    let lock = setting.folder.path().join("lock").display().to_string();
    let built_in = setting.folder.path().join("built-in");
    fs::write(&built_in, setting.module.bytes)?;
    // Nothing ends the compilation of the other module but to give way. Each that runs holds the lock.
    let script = format!(
        "exec 9> {lock}; flock -n 9 || echo two at once >> {lock}.failed\n\
         cmp -s {}.$$ {} && exit 3\nexec sleep 600",
        setting.runs().display(),
        built_in.display()
    );
    let program = setting.script_that_keeps_the_module(&script)?;
    let loader = Arc::new(setting.loader(program)?);
    let (bytes, other) = (other_module(&setting), Arc::clone(&loader));
    let other = tokio::spawn(async move { other.load(bytes.into(), None).await.map(|_| ()) });
    let runs = async |count: usize| {
        let text = || fs::read_to_string(setting.runs()).unwrap_or_default();
        let wait = async {
            while text().lines().count() < count {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, wait).await
    };
    runs(1).await?;
    let loaded = loader.load(setting.module.bytes.into(), None).await;
    assert!(loaded.is_err_and(|one| one.is_final()), "it was compiled meanwhile");
    assert!(runs(3).await.is_ok() && !other.is_finished(), "the other has no turn again");
    let known = loader.find(Digest::of(setting.module.bytes)).await;
    assert!(known.is_some_and(|known| known.is_err()), "what is known waits for nothing");
    other.abort();
    assert!(!PathBuf::from(format!("{lock}.failed")).exists(), "two compilers ran at once");
    Ok(())
}

#[tokio::test]
async fn the_cache_is_bounded_and_what_is_in_force_stays_in_it() -> Outcome {
    let setting = Setting::new()?;
    let cache = setting.cache()?;
    let mut digests = Vec::new();
    for number in 0..3 {
        let mut bytes = setting.module.bytes.to_vec();
        // An empty custom section makes it another module.
        bytes.extend([0, 2, 1, b'0' + number]);
        digests.push(Digest::of(&bytes));
        Policy::precompile(&setting.engine, bytes, &cache).await?;
    }
    let compiler = Compiler::new("/bin/false".into(), &cache, 256);
    let loader = Loader::new(setting.engine.clone(), Some(cache.clone()), 1, Some(compiler));
    let [first, second, third] = digests.try_into().map_err(|_| "there are three")?;
    // What two compilers were writing, one of which was killed.
    let writing = setting.folder.path().join("cache/.unfinished-now");
    let killed = setting.folder.path().join("cache/.unfinished-killed");
    std::fs::write(&writing, "code")?;
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(1_300);
    std::fs::File::create(&killed)?.set_modified(long_ago)?;
    loader.forget_all_but(&HashSet::from([first]));
    loader.trim_cache(third).await;
    assert!(writing.exists() && !killed.exists());
    let is_there = async |digest| {
        Policy::load_compiled(&setting.engine, digest, &cache).await.is_ok_and(|one| one.is_some())
    };
    assert!(is_there(first).await, "it is in force");
    assert!(!is_there(second).await, "it is neither in force nor new");
    assert!(is_there(third).await, "it is new");
    Ok(())
}
