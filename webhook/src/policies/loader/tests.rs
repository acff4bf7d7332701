//! The loader with compilers that fail, and with nothing for one to do.

use opensdn_policies::BuiltIn;
use tempfile::TempDir;

use super::*;

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

    /// With a compiler that is another program.
    fn loader(&self, program: &str) -> Result<Loader, Box<dyn std::error::Error>> {
        let cache = Cache::open(self.folder.path().join("cache"))?;
        let compiler = Compiler::new(program.into(), &cache);
        Ok(Loader::new(self.engine.clone(), Some(cache), Some(compiler)))
    }
}

#[tokio::test]
async fn a_compiler_that_crashes_costs_a_message_and_nothing_is_cached() -> Outcome {
    let setting = Setting::new()?;
    let loader = setting.loader("/bin/false")?;
    let Err(problem) = loader.load(setting.module.bytes.into(), None).await else {
        return Err("it is loaded".into());
    };
    let said = format!("{problem:?}");
    assert!(said.contains("the compiler ended with exit status: 1 on this module"), "{said}");
    assert_eq!(std::fs::read_dir(setting.folder.path().join("cache"))?.count(), 0);
    Ok(())
}

#[tokio::test]
async fn without_a_process_for_the_compiler_it_runs_in_this_one() -> Outcome {
    let setting = Setting::new()?;
    let loader = setting.loader("/nowhere/opensdn-webhook")?;
    let loaded = loader.load(setting.module.bytes.into(), None).await;
    let policy = loaded.map_err(|problem| format!("{problem:?}"))?;
    assert!(!policy.is_from_cache());
    Ok(())
}

#[tokio::test]
async fn what_is_in_the_cache_needs_no_compiler() -> Outcome {
    let setting = Setting::new()?;
    let cache = Cache::open(setting.folder.path().join("cache"))?;
    Policy::precompile(&setting.engine, setting.module.bytes, &cache)?;
    let loader = setting.loader("/bin/false")?;
    let loaded = loader.load(setting.module.bytes.into(), None).await;
    assert!(loaded.map_err(|problem| format!("{problem:?}"))?.is_from_cache());
    Ok(())
}
