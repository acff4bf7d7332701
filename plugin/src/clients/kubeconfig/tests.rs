//! What the flags make of a kubeconfig. Environment variables are the process's, so these tests name
//! their file; that `KUBECONFIG` is read is shown by the program's own tests.

use kube::config::{AuthInfo, Cluster};

use super::*;
use crate::clients::Token;

const FILE: &str = "\
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c1
  cluster: {server: 'https://one:6443', certificate-authority-data: QUJD, tls-server-name: uno}
- name: c2
  cluster: {server: 'https://two:6443'}
users:
- name: u1
  user: {client-certificate-data: QUJD, client-key-data: QUJD}
- name: u2
  user: {exec: {command: login, apiVersion: client.authentication.k8s.io/v1}}
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: team}
- name: two
  context: {cluster: c2, user: u2}
";

fn of(text: &str, flags: impl FnOnce(&mut ClusterFlags)) -> Result<(Cluster, AuthInfo), Failure> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, text).unwrap();
    let mut given = ClusterFlags { kubeconfig: Some(path), ..ClusterFlags::default() };
    flags(&mut given);
    let chosen = chosen(&given)?.unwrap();
    let cluster = chosen.clusters.into_iter().next().unwrap().cluster.unwrap();
    let user = chosen.auth_infos.into_iter().next().unwrap().auth_info.unwrap();
    Ok((cluster, user))
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn takes_the_current_context_or_the_named_one() {
    let (cluster, user) = of(FILE, |_| {}).unwrap();
    assert_eq!(cluster.server, some("https://one:6443"));
    assert_eq!(user.client_certificate_data, some("QUJD"));
    let (cluster, user) = of(FILE, |flags| flags.context = some("two")).unwrap();
    assert_eq!(cluster.server, some("https://two:6443"));
    assert!(user.exec.is_some());
}

#[test]
fn cluster_and_user_can_be_named_one_by_one() {
    let (cluster, user) = of(FILE, |flags| {
        flags.cluster = some("c2");
        flags.user = some("u2");
    })
    .unwrap();
    assert_eq!(cluster.server, some("https://two:6443"));
    assert!(user.exec.is_some());
}

#[test]
fn a_server_of_its_own_does_not_keep_the_name_in_the_certificate() {
    let (cluster, _) = of(FILE, |flags| flags.server = some("https://three")).unwrap();
    assert_eq!(cluster.server, some("https://three"));
    assert_eq!(cluster.tls_server_name, None);
    let (cluster, _) = of(FILE, |flags| flags.tls_server_name = some("due")).unwrap();
    assert_eq!(cluster.tls_server_name, some("due"));
}

#[test]
fn without_a_kubeconfig_a_server_is_enough() {
    let (cluster, _) = of("", |flags| flags.server = some("localhost:8080")).unwrap();
    assert_eq!(cluster.server, some("http://localhost:8080"));
}

#[test]
fn authorities_and_insecurity_replace_those_of_the_file() {
    let (cluster, _) = of(FILE, |flags| flags.insecure_skip_tls_verify = true).unwrap();
    assert_eq!(cluster.insecure_skip_tls_verify, Some(true));
    assert_eq!(cluster.certificate_authority_data, None);
    let (cluster, _) = of(FILE, |flags| flags.certificate_authority = some("ca.pem")).unwrap();
    assert_eq!(cluster.insecure_skip_tls_verify, Some(false));
    assert_eq!(cluster.certificate_authority, some("ca.pem"));
    assert_eq!(cluster.certificate_authority_data, None);
}

#[test]
fn a_token_takes_the_place_of_a_credential_plugin() {
    let (_, user) = of(FILE, |flags| {
        flags.context = some("two");
        flags.token = Some(Token::from("secret".to_owned()));
    })
    .unwrap();
    assert!(user.exec.is_none());
    assert!(user.token.is_some());
}

#[test]
fn certificate_and_key_replace_those_of_the_file() {
    let (_, user) = of(FILE, |flags| {
        flags.client_certificate = some("me.pem");
        flags.client_key = some("me.key");
    })
    .unwrap();
    assert_eq!((user.client_certificate, user.client_key), (some("me.pem"), some("me.key")));
    assert!(user.client_certificate_data.is_none() && user.client_key_data.is_none());
}

#[test]
fn impersonation_is_handed_on_whole() {
    let (_, user) = of(FILE, |flags| {
        flags.impersonate = some("jane");
        flags.as_uid = some("42");
        flags.as_group = vec!["admins".to_owned(), "ops".to_owned()];
        flags.as_user_extra =
            vec![("scope".to_owned(), "a".to_owned()), ("scope".to_owned(), "b".to_owned())];
    })
    .unwrap();
    assert_eq!((user.impersonate, user.impersonate_uid), (some("jane"), some("42")));
    assert_eq!(user.impersonate_groups, Some(vec!["admins".to_owned(), "ops".to_owned()]));
    let extras = user.impersonate_user_extra.unwrap();
    assert_eq!(extras.get("scope"), Some(&vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let failure = of(FILE, |flags| flags.context = some("three")).unwrap_err();
    assert_eq!(failure.message, "the kubeconfig has no context three");
    assert_eq!(failure.hint, "use --context with one of: one, two");
    let failure = of(FILE, |flags| flags.cluster = some("c3")).unwrap_err();
    assert_eq!(failure.hint, "use --cluster with one of: c1, c2");
    let failure = of(FILE, |flags| flags.user = some("u3")).unwrap_err();
    assert_eq!(failure.hint, "use --user with one of: u1, u2");
    let failure = of("contexts: []", |_| {}).unwrap_err();
    assert_eq!(failure.message, "the kubeconfig has no current context");
}

#[test]
fn a_broken_file_is_named() {
    let failure = of("clusters: 7", |_| {}).unwrap_err();
    assert!(failure.message.ends_with("config cannot be used"), "{failure:?}");
    assert_eq!(failure.causes.len(), 1, "{failure:?}");
    let flags =
        ClusterFlags { kubeconfig: Some("/nowhere/config".into()), ..ClusterFlags::default() };
    assert!(chosen(&flags).is_err());
}

#[test]
fn a_token_is_not_shown() {
    let flags =
        ClusterFlags { token: Some(Token::from("secret".to_owned())), ..ClusterFlags::default() };
    assert!(!format!("{flags:?}").contains("secret"));
}
