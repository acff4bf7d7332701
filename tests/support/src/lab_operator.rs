//! The operator in the pods of a lab, installed as on any cluster, with the images of what it runs. Deliberately
//! not here: the operator as a process of this machine (`operator`).

use opensdn_deploy::names::operator::{NAME, NAMESPACE};

use crate::development_image::DevelopmentImage;
use crate::kubectl::kubectl;
use crate::sandbox::Sandbox;
use crate::{Failed, installer};

/// The image of Redis and of stunnel: what their scripts run, as Debian packs it.
pub const REDIS_IMAGE: &str = "opensdn-tests-redis:1";
const OF_REDIS: [&str; 12] = [
    "redis-server",
    "redis-cli",
    "stunnel",
    "bash",
    "sh",
    "cat",
    "md5sum",
    "mkdir",
    "mv",
    "sleep",
    "seq",
    "date",
];

/// Loads the images, also that of Redis, installs the operator, and returns when its pods are ready.
///
/// # Errors
/// Says which step failed.
pub async fn install(sandbox: &Sandbox) -> Result<(), Failed> {
    load_redis(sandbox).await?;
    install_alone(sandbox).await
}

/// Loads the image of Redis.
///
/// # Errors
/// It cannot be made, or a node does not take it.
pub async fn load_redis(sandbox: &Sandbox) -> Result<(), Failed> {
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    let image = DevelopmentImage::of_installed(REDIS_IMAGE, &OF_REDIS)?;
    Ok(lab.load_image(image.archive()).await?)
}

/// Loads the image of the operator, installs it, and returns when its pods are ready.
///
/// # Errors
/// Says which step failed.
pub async fn install_alone(sandbox: &Sandbox) -> Result<(), Failed> {
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    lab.load_image(DevelopmentImage::of_ours(NAME)?.archive()).await?;
    for step in &opensdn_deploy::operator()? {
        installer::apply(sandbox, step).await?;
    }
    let deployment = format!("deployment/{NAME}");
    let status = ["rollout", "status", "-n", NAMESPACE, &deployment, "--timeout=120s"];
    kubectl(sandbox, &status).await?.success();
    Ok(())
}
