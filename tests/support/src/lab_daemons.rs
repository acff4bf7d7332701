//! The image of what stands in for OpenSDN's own daemons in the lab: the program of `tests/stand-in`, started by the
//! commands, with the options and at the places that upstream's images have (`tests/images/daemons`). Deliberately not
//! here: the image of that program alone (`tests/images/stand-in`), which is made of a release build.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::Failed;
use crate::config_api::{FakeConfigApi, Settings};
use crate::development_image::DevelopmentImage;
use crate::image::run;
use crate::sandbox::lab::{CONTROL, Lab};

/// All daemons, and what prepares nodes for them. The tag says of which release its files are to be.
pub const IMAGE: &str = "opensdn-tests-daemons:R24.1";
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../images/daemons/root");
const PROGRAM: &str = "opensdn-stand-in";
/// What the operator's scripts run, and those of the folder.
const PROGRAMS: [&str; 31] = [
    "awk", "bash", "cat", "chgrp", "chmod", "chown", "cp", "curl", "date", "dirname", "grep",
    "gzip", "id", "ls", "md5sum", "mkdir", "mv", "od", "openssl", "rm", "sed", "seq", "sh",
    "sleep", "sort", "tail", "tar", "timeout", "touch", "tr", "wc",
];
/// The archive of CNI programs in the image that installs OpenSDN's.
const CNI_PROGRAMS: &str = "opt/cni-v0.3.0.tgz";

/// Whom the stand-ins of the Config API ask, in the network of the control plane.
const CONFIG_API: u16 = 18082;
const OWN: &str = "etc/opensdn-stand-in.ini";

/// The image in all nodes, and one fake Config API behind all pods that act as one.
pub struct LabDaemons {
    api: FakeConfigApi,
}

impl LabDaemons {
    /// Loads the image into every node that runs, and starts the fake.
    ///
    /// # Errors
    /// The image cannot be made, a node does not take it, or the fake does not start.
    pub async fn start(lab: &Lab) -> Result<Self, Failed> {
        let folder = TempDir::new()?;
        let root = folder.path().join("root");
        run(Command::new("cp").arg("-a").args([Path::new(FILES), root.as_path()]))?;
        // Git keeps no empty folder.
        fs::create_dir(root.join("tmp"))?;
        let mut archive = Command::new("tar");
        archive.arg("-czf").arg(root.join(CNI_PROGRAMS)).arg("-C").arg(root.join("usr/bin"));
        run(archive.arg("."))?;
        let listen = SocketAddr::from((CONTROL, CONFIG_API));
        fs::write(root.join(OWN), format!("[STAND-IN]\nconfig_api={listen}\n"))?;
        let image = DevelopmentImage::of_folder(IMAGE, &root, PROGRAM, &PROGRAMS)?;
        lab.load_image(image.archive()).await?;

        let settings = Settings { listen, ..Settings::default() };
        // The errors of the fake stay in their thread.
        let start = || FakeConfigApi::start(settings).map_err(|error| error.to_string());
        Ok(Self { api: lab.made_beside_control_plane(start)?? })
    }

    /// The fake Config API.
    #[must_use]
    pub fn api(&self) -> &FakeConfigApi {
        &self.api
    }
}
