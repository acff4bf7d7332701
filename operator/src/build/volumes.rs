//! The volumes of a pod, and where its containers mount them. Names and paths are those of tf-operator.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, HostPathVolumeSource, KeyToPath,
    PersistentVolumeClaimVolumeSource, ProjectedVolumeSource, SecretProjection, SecretVolumeSource,
    Volume, VolumeMount, VolumeProjection,
};

use super::Valid;
use super::certificates::parts;
use super::valid::Home;
use crate::component::{Access, Container, Credentials, Source};
use crate::kind::Workload;
use crate::names::TRUST;

/// Where the files of the component are.
pub(super) const CONFIGURATION_FOLDER: &str = "/etc/contrailconfigmaps";
const CERTIFICATES_FOLDER: &str = "/etc/certificates";
const CREDENTIALS_FOLDER: &str = "/etc/credentials";
const TRUST_FOLDER: &str = "/etc/ssl/certs/kubernetes";
const TRUST_VOLUME: &str = "ca-certs";
const LOGS: (&str, &str) = ("contrail-logs", "/var/log/contrail");
/// The folder of the component's own passwords.
const OWN: &str = "own";
/// That of the token of its ServiceAccount.
const TOKEN: &str = "token";
/// Volume, path, and whether it may be written.
const OF_EVERY_NODE: [(&str, &str, bool); 4] = [
    ("etc-hosts", "/etc/hosts", false),
    ("etc-resolv", "/etc/resolv.conf", false),
    ("etc-localtime", "/etc/localtime", false),
    ("var-crashes", "/var/crashes", true),
];

/// Those of the pod, with a volume where it is at home.
pub(super) fn build(valid: &Valid, home: Option<&Home>) -> Vec<Volume> {
    let instance = &valid.instance;
    let mut volumes = vec![
        config_map(&instance.config_volume(), &instance.config_map()),
        config_map(TRUST_VOLUME, TRUST),
        certificates(valid),
    ];
    let own = own_credentials(valid).into_iter();
    volumes.extend(own.map(|(folder, name)| secret(&volume_of(folder), &name, None)));
    volumes.extend(valid.description.credentials.iter().map(named_secret));
    let folders = valid.description.folders_of_node.iter();
    volumes
        .extend(folders.map(|one| host_path(&volume_of(one.folder), &one.path, Some("Directory"))));
    volumes.extend(valid.description.volumes.iter().map(|volume| match volume.source {
        Source::Data(path) => match home {
            Some(home) => claim(volume.name, &home.claim.name),
            None => host_path(volume.name, path, Some("DirectoryOrCreate")),
        },
        Source::Folder(path) => host_path(volume.name, path, Some("DirectoryOrCreate")),
        Source::Existing(path) => host_path(volume.name, path, None),
        Source::Empty => Volume {
            name: volume.name.to_owned(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        },
    }));
    let all = OF_EVERY_NODE.iter().map(|(name, path, is_folder)| {
        host_path(name, path, is_folder.then_some("DirectoryOrCreate"))
    });
    volumes.extend(all);
    volumes
}

/// Those of a container.
pub(super) fn mounts(valid: &Valid, described: &Container) -> Vec<VolumeMount> {
    let mount = |name: &str, path: &str, access: Access| VolumeMount {
        mount_path: path.to_owned(),
        mount_propagation: (access == Access::MountForNode).then(|| "Bidirectional".to_owned()),
        name: name.to_owned(),
        read_only: (access == Access::Read).then_some(true),
        ..VolumeMount::default()
    };
    let instance = &valid.instance;
    let own = described.mounts.iter().map(|own| mount(own.volume, own.path, own.access));
    let mut mounts: Vec<_> = own.collect();
    mounts.push(mount(&instance.config_volume(), CONFIGURATION_FOLDER, Access::Read));
    mounts.push(mount(TRUST_VOLUME, TRUST_FOLDER, Access::Read));
    mounts.push(mount(&instance.certificates(), CERTIFICATES_FOLDER, Access::Read));
    let folders = valid.description.folders_of_node.iter().map(|one| one.folder);
    let others = valid.description.credentials.iter().map(|one| one.folder);
    let own = own_credentials(valid).into_iter().map(|(folder, _)| folder);
    for folder in own.chain(others).chain(folders) {
        let path = format!("{CREDENTIALS_FOLDER}/{folder}");
        mounts.push(mount(&volume_of(folder), &path, Access::Read));
    }
    if valid.description.volumes.iter().any(|volume| volume.name == LOGS.0) {
        mounts.push(mount(LOGS.0, LOGS.1, Access::Write));
    }
    let of_node = OF_EVERY_NODE.iter();
    mounts.extend(of_node.map(|(name, path, is_written)| {
        mount(name, path, if *is_written { Access::Write } else { Access::Read })
    }));
    mounts
}

/// Folders and Secrets of what the operator has made for it.
fn own_credentials(valid: &Valid) -> Vec<(&'static str, String)> {
    let own = (!valid.description.passwords.is_empty()).then(|| (OWN, valid.own_secret()));
    let token = valid.description.token.then(|| (TOKEN, valid.instance.token()));
    own.into_iter().chain(token).collect()
}

/// A Secret that a user names may be any of the namespace, such as one with the token of another component.
fn named_secret(credentials: &Credentials) -> Volume {
    let item =
        |key: &&str| KeyToPath { key: (*key).to_owned(), path: (*key).to_owned(), mode: None };
    let items = credentials.keys.iter().map(item).collect();
    secret(&volume_of(credentials.folder), &credentials.secret, Some(items))
}

fn volume_of(folder: &str) -> String {
    format!("{folder}-credentials")
}

fn config_map(volume: &str, name: &str) -> Volume {
    Volume {
        name: volume.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: name.to_owned(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// With all of its keys, or with some.
fn secret(volume: &str, name: &str, items: Option<Vec<KeyToPath>>) -> Volume {
    Volume {
        name: volume.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(name.to_owned()),
            items,
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn claim(volume: &str, name: &str) -> Volume {
    Volume {
        name: volume.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: name.to_owned(),
            ..PersistentVolumeClaimVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// In one folder, of however many Secrets they are. Of a StatefulSet it is one: it has a few members.
fn certificates(valid: &Valid) -> Volume {
    let name = valid.instance.certificates();
    if valid.workload == Workload::StatefulSet {
        return secret(&name, &name, None);
    }
    let source = |number: usize| VolumeProjection {
        secret: Some(SecretProjection {
            name: parts::name(&name, number),
            optional: (number > 0).then_some(true),
            ..SecretProjection::default()
        }),
        ..VolumeProjection::default()
    };
    Volume {
        name: name.clone(),
        projected: Some(ProjectedVolumeSource {
            default_mode: Some(0o440),
            sources: Some((0..parts::MOST).map(source).collect()),
        }),
        ..Volume::default()
    }
}

fn host_path(volume: &str, path: &str, type_: Option<&str>) -> Volume {
    Volume {
        name: volume.to_owned(),
        host_path: Some(HostPathVolumeSource {
            path: path.to_owned(),
            type_: type_.map(str::to_owned),
        }),
        ..Volume::default()
    }
}
