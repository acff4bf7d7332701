//! The kinds in which policy engines report, installed as those who use them ship them.

use std::path::PathBuf;
use std::process::Stdio;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use tokio::process::Command;

use crate::Failed;
use crate::installer::install_crds;

const FETCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../report-apis/fetch.sh");

/// One API for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportApi {
    /// `reports` and `clusterreports` of `openreports.io`.
    OpenReports,
    /// `policyreports` and `clusterpolicyreports` of `wgpolicyk8s.io`.
    PolicyReports,
}

impl ReportApi {
    fn files(self) -> [&'static str; 2] {
        match self {
            Self::OpenReports => {
                ["openreports.io_reports.yaml", "openreports.io_clusterreports.yaml"]
            }
            Self::PolicyReports => {
                ["wgpolicyk8s.io_policyreports.yaml", "wgpolicyk8s.io_clusterpolicyreports.yaml"]
            }
        }
    }

    /// Its definitions.
    ///
    /// # Errors
    /// They cannot be fetched.
    pub async fn definitions(self) -> Result<Vec<CustomResourceDefinition>, Failed> {
        let output = Command::new(FETCH).stderr(Stdio::inherit()).output().await?;
        if !output.status.success() {
            return Err(
                format!("{FETCH} ended with {}; it has said why above", output.status).into()
            );
        }
        let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim_end());
        let read = |file| -> Result<CustomResourceDefinition, Failed> {
            let text = std::fs::read_to_string(folder.join(file))?;
            Ok(serde_saphyr::from_str(&text)?)
        };
        self.files().into_iter().map(read).collect()
    }

    /// Installs it.
    ///
    /// # Errors
    /// It cannot be fetched, or the API server refuses it.
    pub async fn install(self, client: &Client) -> Result<(), Failed> {
        Ok(install_crds(client, &self.definitions().await?).await?)
    }
}
