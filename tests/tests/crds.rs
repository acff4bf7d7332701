//! The API server takes our CRDs as they are committed.

use std::error::Error;

use opensdn_tests::product::install_crds;
use opensdn_tests::sandbox::Sandbox;

type Outcome = Result<(), Box<dyn Error>>;

const YAML: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/yaml");

#[tokio::test]
async fn api_server_takes_the_generated_yaml_without_a_warning() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let arguments =
        ["apply", "--server-side", "--warnings-as-errors", "--dry-run=server", "-f", YAML];
    let applied = sandbox.kubectl(&arguments).await?;
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));

    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    let listed = sandbox.kubectl(&["api-resources", "--categories=opensdn", "-o=name"]).await?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(names.lines().count(), opensdn_crds::all().len(), "{names}");
    Ok(())
}
