//! Images of real services in the lab, as `tests/images/build.sh` makes them: seconds where the cache has them.
//! Deliberately not here: what programs of this machine make an image of (`development_image`).

use std::path::PathBuf;
use std::process::Command;

use crate::Failed;
use crate::sandbox::lab::Lab;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../images/build.sh");

/// Builds the image of that folder of `tests/images`, loads it into every node that runs, and says how pods name it.
///
/// # Errors
/// It cannot be built, or a node does not take it.
pub async fn load(lab: &Lab, service: &str) -> Result<String, Failed> {
    let built = Command::new(BUILD).arg(service).output()?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned().into());
    }
    let archive = PathBuf::from(String::from_utf8(built.stdout)?.trim());
    lab.load_image(&archive).await?;
    name_of(&archive.file_name().unwrap_or_default().to_string_lossy(), service)
        .ok_or_else(|| format!("{} is no archive of {service}", archive.display()).into())
}

/// `opensdn-tests-SERVICE-VERSION-DIGEST.tar`.
fn name_of(file: &str, service: &str) -> Option<String> {
    let image = format!("opensdn-tests-{service}");
    let rest = file.strip_prefix(&image)?.strip_prefix('-')?;
    let (version, _) = rest.rsplit_once('-')?;
    Some(format!("{image}:{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_its_service_and_version() {
        let name = name_of("opensdn-tests-cassandra-3.11-3.11.19-0123abcd.tar", "cassandra-3.11");
        assert_eq!(name.as_deref(), Some("opensdn-tests-cassandra-3.11:3.11.19"));
        assert_eq!(name_of("other-1-2.tar", "zookeeper"), None);
    }
}
