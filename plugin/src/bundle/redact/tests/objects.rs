//! Secrets in objects, as an adversary planted them and as they are.

use serde_json::{Value, json};

use super::super::names::is_secret;
use super::super::object;

fn clean(mut value: Value) -> Value {
    object(&mut value);
    value
}

#[test]
fn names_of_secrets_are_known() {
    for name in [
        "adminPassword",
        "RABBITMQ_PASSWORD",
        "erlangCookie",
        "k8sToken",
        "metadataProxySecret",
        "vrouterDecryptKey",
        "client-key-data",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "ssl.key",
        "auth",
        "tls.key",
        "pass",
        "pwd",
        "pw",
        "passcode",
        "community",
        "db.pass",
        "dbPass",
        "REDIS_AUTH",
        "KEYSTONE_AUTH",
        "RABBITMQ_DEFAULT_PASS",
        "CRED",
        "id_rsa",
        "keytab",
        ".htpasswd",
        "passwords.txt",
        "SNMP_COMMUNITY",
        "MYSQL_PWD",
        "Пароль",
        "X-Auth-Key",
    ] {
        assert!(is_secret(name), "{name}");
    }
}

#[test]
fn names_of_where_secrets_are_are_none_of_secrets() {
    for name in [
        "secretName",
        "keystoneSecretName",
        "secretKeyRef",
        "key",
        "tokenExpirationSeconds",
        "topologyKey",
        "serverKeyfile",
        "name",
        "authMode",
        "kubernetesTokenFile",
        "passwordPolicyType",
        "auth_type",
        "username",
        "matchLabelKeys",
        "certKeyLength",
        "tls.crt",
        "keystone",
        "passthrough",
        "bypass",
        "rsa",
        "authParameters",
        "KEYSTONE_AUTH_HOST",
        "token_url",
        "nodeName",
        "publicKey",
    ] {
        assert!(!is_secret(name), "{name}");
    }
}

#[test]
fn an_object_keeps_its_form_and_loses_its_secrets() {
    let pod = clean(
        json!({"kind": "Pod", "metadata": {"name": "p", "managedFields": [1], "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "hunter2", "a": "password=hunter2"}},
        "spec": {"containers": [{"args": ["--password", "hunter2", "--token=hunter2", "x"],
            "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "A", "value": "b"}]}]}}),
    );
    let text = pod.to_string();
    assert!(!text.contains("hunter2") && !text.contains("managedFields"), "{text}");
    assert_eq!(pod["spec"]["containers"][0]["env"][1]["value"], "b");
    assert_eq!(pod["spec"]["containers"][0]["args"][3], "x");
}

#[test]
fn every_planted_form_of_a_secret_is_taken_out_of_an_object() {
    let objects = [
        json!({"kind": "ConfigMap", "metadata": {"name": "named"}, "data": {"password": "ZQX067",
            ".erlang.cookie": "ZQX068", "id_rsa": "ZQX069", "kubeconfig": "users:\n- user:\n    token: ZQX070\n    client-key-data: ZQX071\n",
            "token.txt": "ZQX072", "passwords.txt": "ZQX073", "secret-file": "ZQX074", "db.pass": "ZQX075",
            "htpasswd": "ZQX076", "rndc.key": "ZQX077", "keytab": "ZQX078"}, "binaryData": {"x": "ZQX079"}}),
        json!({"kind": "Deployment", "spec": {"template": {"metadata": {"annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"x\":\"ZQX106\"}}",
                "kapp.k14s.io/original": "ZQX112"}},
            "spec": {"containers": [{"name": "c", "command": ["sh", "-c", "x --password ZQX086"],
                "args": ["-p", "ZQX087", "--db-password", "ZQX088", "--token=ZQX089", "-PZQX090", "user:ZQX091"],
                "env": [{"name": "DB_PASS", "value": "ZQX092"}, {"name": "MYSQL_PWD", "value": "ZQX093"},
                    {"name": "RABBITMQ_DEFAULT_PASS", "value": "ZQX094"}, {"name": "X_PASSWORD", "value": "ZQX095"},
                    {"name": "DATABASE_URL", "value": "postgres://u:ZQX096@h/db"}, {"name": "SNMP_COMMUNITY", "value": "ZQX097"},
                    {"name": "KEYSTONE_AUTH", "value": "ZQX098"}, {"name": "AWS_ACCESS_KEY_ID", "value": "ZQX099"},
                    {"name": "PASSWORD_FILE", "value": "ZQX100"}, {"name": "CRED", "value": "ZQX101"}],
                "readinessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "Basic ZQX102"},
                    {"name": "Authorization", "value": "ZQX103"}, {"name": "X-Auth-Token", "value": "ZQX104"}]}},
                "livenessProbe": {"exec": {"command": ["mysqladmin", "-uroot", "-pZQX105", "ping"]}}},
                {"command": ["/usr/bin/redis-cli"], "args": ["-a", "ZQX113", "ping"]}]}}}}),
        json!({"kind": "ServiceAccount", "metadata": {"annotations": {"iam/key": "ZQX107"}}}),
        json!({"kind": "Service", "metadata": {"annotations": {"lb/community": "ZQX108", "lb/pass": "ZQX109"}}}),
        json!({"kind": "Event", "message": "Liveness probe failed: mysql -u root --password ZQX110 -pZQX111 failed"}),
        json!({"auth_data": {"key_type": "md5", "key_items": [{"key_id": 0, "key": "ZQX114"}]}}),
        json!({"credentials": {"value": "ZQX115"}, "client_secret": ["ZQX116"], "tokens": {"ZQX117": "admin"},
            "secret": {"name": "ZQX118", "x": "ZQX119"}, "secrets": ["ZQX120"], "password": 5, "authorization": "ZQX121"}),
    ];
    for given in objects {
        let clean = clean(given).to_string();
        assert!(!clean.contains("ZQX"), "{clean}");
    }
}

#[test]
fn of_secrets_keys_and_sizes_stay_wherever_they_are() {
    let secret = json!({"kind": "Secret", "metadata": {"name": "s", "annotations": {
            "kapp.k14s.io/original": "ZQX080 ZQX081", "note": "{\"auths\":{\"r\":{\"password\":\"ZQX082\",\"auth\":\"ZQX083\"}}}",
            "plain": "ZQX084"}}, "data": {"a": "ZQX085ZQX085"}, "stringData": {"plain": "ZQX085", "empty": ""}});
    let item = json!({"metadata": {"annotations": {"x": "ZQX1"}}, "data": {"a": "ZQX2"}});
    for given in [
        secret.clone(),
        json!({"kind": "List", "items": [secret.clone()]}),
        json!({"kind": "X", "spec": {"manifest": secret.clone(), "text": secret.to_string()}}),
        json!({"kind": "SecretList", "items": [item]}),
    ] {
        let clean = clean(given).to_string();
        assert!(!clean.contains("ZQX"), "{clean}");
    }
    let clean = clean(secret);
    assert_eq!(clean["data"]["a"], "<redacted> (12 bytes)");
    assert_eq!(clean["stringData"]["empty"], "<redacted> (0 bytes)");
    assert_eq!(clean["metadata"]["name"], "s");
}
