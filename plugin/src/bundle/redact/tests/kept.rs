//! What has no secret stays as it is: without it the bundle is worth nothing.

use serde_json::{Value, json};

use super::super::{object, text};

const TEXTS: [&str; 69] = [
    "a secret is missing",
    "authMode: keystone\nAUTH_MODE: keystone",
    "secretName: redis-tls\nkeystoneSecretName: keystone-auth",
    "image: registry.example.com:5000/opensdn/operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "image: docker.io/library/redis:7.2.4",
    "node worker-1.example.com is ready, ports 8082, 8143/TCP",
    "tokenExpirationSeconds: 3600\nexpirationSeconds: 3607",
    "automountServiceAccountToken: true",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUEXAMPLE0123456789abcdefghijklmnopqrstuvwxyz\n-----END CERTIFICATE-----\n",
    "secrets \"opensdn-webhook-ca\" not found",
    "secrets \"x\" is forbidden: User \"system:serviceaccount:tf:default\" cannot get resource \"secrets\" in API group \"\" in the namespace \"tf\"",
    "Error from server (NotFound): secrets \"redis-password\" not found",
    "MountVolume.SetUp failed for volume \"certs\" : secret \"redis-tls\" not found",
    "MountVolume.SetUp failed for volume \"kube-api-access-token\" : failed to fetch token: serviceaccounts \"x\" not found",
    "couldn't find key password in Secret tf/redis1",
    "spec.keystone.secretName: Required value",
    "spec.adminPassword: Forbidden: is set by the operator",
    "spec.secretName: Invalid value: \"redis-tls\": must not change",
    "error: You must be logged in to the server (the server has asked for the client to provide credentials)",
    "invalid bearer token",
    "Unable to authenticate the request: [invalid bearer token, token lookup failed]",
    "http://host:8082/introspect and https://10.0.0.1:6443/api/v1/pods?limit=500",
    "ssl_keyfile=/etc/certificates/server-key-10.0.0.1.pem",
    "password_file: /run/secrets/redis\nPASSWORD_FILE=/run/x",
    "args: [\"--tls-private-key-file\", \"/etc/tls/tls.key\"]",
    "--password=$(DB_PASSWORD)",
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: redis\n      key: password\n- name: A\n  value: b\n",
    "secret:\n  secretName: redis-tls\n  defaultMode: 420\n",
    "imagePullSecrets:\n- name: regcred\n",
    "sources:\n- serviceAccountToken:\n    expirationSeconds: 3607\n    path: token\n",
    "volumeMounts:\n- mountPath: /var/run/secrets/kubernetes.io/serviceaccount\n  name: kube-api-access-x\n",
    "tolerations:\n- key: node.kubernetes.io/not-ready\n  operator: Exists\n",
    "topologyKey: kubernetes.io/hostname",
    "I1125 03:00:00.000000 1 controller.go:42] \"started\" controller=\"vrouter\" key=\"tf/vrouter1\"",
    "level=info msg=\"reconciled Redis tf/redis1\" generation=3 duration=12ms",
    "{\"level\":\"info\",\"ts\":1764039600.5,\"msg\":\"started\",\"z\":1,\"a\":[1,2]}",
    "password: \"\"",
    "token=",
    "passwords:",
    "mysql -u root -h 10.0.0.1 db",
    "ssh -p 2222 host",
    "docker run -p 8080:80 -v /a:/b image",
    "redis-cli -h 10.0.0.1 -p 6379 ping",
    "target:64512:8000001 10.0.0.1:32767:10.0.0.1 52:54:00:12:34:56 fe80::5054:ff:fe12:3456",
    "52:54:00:12:34:56",
    "2001:db8:1:2:3:4:5:6",
    "uid: 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0",
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "panic: runtime error: invalid memory address or nil pointer dereference\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:10 +0x1b\n",
    "Mon 25 Nov: can't open 'x': No such file or directory",
    "kubectl -n tf get secrets",
    "rules:\n- apiGroups: [\"\"]\n  resources: [\"secrets\", \"serviceaccounts/token\"]\n  verbs: [\"get\"]\n",
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole",
    "authorization-mode=Node,RBAC",
    "KEYSTONE_AUTH_URL_TOKENS: /v3/auth/tokens\nKEYSTONE_AUTH_HOST: 10.0.0.1",
    "caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJzekNDQVZtZ0F3SUJBZ0lVCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K",
    "Пользователь вошёл: да",
    "the community of users; tests pass in all",
    "routing key: x, partition_key=7, certKeyLength: 2048",
    "%3|1764039600.1|FAIL|rdkafka#producer-1| [thrd:10.0.0.1:9092/1]: Connect to ipv4#10.0.0.1:9092 failed",
    "git@github.com:opensdn/operator.git and user@example.com",
    "bypass: on, compass=3",
    "| name | role |\n| redis | cache |",
    "redis_password missing",
    "secret \"redis-tls\" and 'redis-tls'",
    "the password \"of the day\" is a sentence",
    "x->token is null, a -> b",
    "https://hooks.slack.com/services/ is not reached",
    "digest sha256 of the image, identified by name",
];

#[test]
fn texts_without_secrets_stay_as_they_are() {
    let changed: Vec<_> = TEXTS
        .into_iter()
        .map(|given| (given, text(given)))
        .filter(|(given, clean)| given != clean)
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn what_is_around_a_secret_stays() {
    let cases = [
        ("password=hunter2 user=x", "password=<redacted> user=x"),
        ("  admin_password : hunter2\n", "  admin_password : <redacted>\n"),
        ("export RABBIT_PASSWORD='hunter2'", "export RABBIT_PASSWORD='<redacted>'"),
        ("{\"token\": \"hunter2\", \"a\": 1} x", "{\"token\": \"<redacted>\", \"a\": 1} x"),
        ("{\"token\": \"hunter2\", \"a\": 1}", "{\"a\":1,\"token\":\"<redacted>\"}"),
        ("{\\\"token\\\":\\\"hunter2\\\"}", "{\\\"token\\\":\\\"<redacted>\\\"}"),
        ("  secret \"hunter2\";", "  secret \"<redacted>\";"),
        ("Authorization: Bearer hunter2", "Authorization: Bearer <redacted>"),
        ("amqp://guest:hunter2@host:5673/", "amqp://guest:<redacted>@host:5673/"),
        ("run --admin-password hunter2 --x y", "run --admin-password <redacted> --x y"),
        ("X-Auth-Token: hunter2", "X-Auth-Token: <redacted>"),
        ("password: |\n  hunter2\n  more\n\nuser: x\n", "password: <redacted>\n\nuser: x\n"),
        ("tokens:\n- hunter2\n- more\nuser: x\n", "tokens: <redacted>\nuser: x\n"),
        (
            "msg=\"login with password=hunter2\" level=info",
            "msg=\"login with password=<redacted>\" level=info",
        ),
        ("{user: x, password: hunter2, a: b}", "{user: x, password: <redacted>, a: b}"),
        (
            "  \"password\": \"hunter2\",\n  \"user\": \"x\"\n",
            "  \"password\": \"<redacted>\",\n  \"user\": \"x\"\n",
        ),
        ("PASSWORD=hunter2\r\nUSER=x\r\n", "PASSWORD=<redacted>\r\nUSER=x\r\n"),
        (
            "a\n-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nb",
            "a\n<redacted> private key\nb",
        ),
        (
            "spec.password: Invalid value: \"hunter2\": too short",
            "spec.password: Invalid value: \"<redacted>\": too short",
        ),
        ("GET /x?token=hunter2&limit=5 200", "GET /x?token=<redacted>&limit=5 200"),
        ("mysqladmin -uroot -phunter2 ping", "mysqladmin -uroot -p<redacted> ping"),
    ];
    let changed: Vec<_> = cases
        .into_iter()
        .map(|(given, expected)| (given, expected, text(given)))
        .filter(|(_, expected, clean)| expected != clean)
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn objects_without_secrets_stay_as_they_are() {
    let pod: Value = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app.kubernetes.io/name": "x"}, "annotations": {"a": "b"}},
        "spec": {"nodeName": "worker-1", "imagePullSecrets": [{"name": "regcred"}],
            "automountServiceAccountToken": true, "serviceAccountName": "default",
            "containers": [{"name": "c", "image": "redis:7.2", "ports": [{"containerPort": 6379}],
                "command": ["redis-server", "--port", "6379"], "args": ["--tls-key-file", "/etc/tls/tls.key", "-p", "8080"],
                "env": [{"name": "A", "value": "b"}, {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "PASSWORD_FILE", "value": "/run/x"}, {"name": "ADMIN_SECRET_NAME", "value": "redis-admin"},
                    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}]}],
            "tolerations": [{"key": "k", "value": "v", "operator": "Equal"}],
            "volumes": [{"name": "v", "secret": {"secretName": "redis-tls", "defaultMode": 420, "items": [{"key": "tls.key", "path": "tls.key"}]}},
                {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"secret": {"name": "x", "optional": true}}]}}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "secret \"x\" not found"}]}});
    let role = json!({"kind": "Role", "rules": [{"resources": ["secrets"], "verbs": ["get"]}]});
    let account = json!({"kind": "ServiceAccount", "secrets": [{"name": "default-token-x"}]});
    let manager = json!({"kind": "Keystone", "spec": {"authMode": "keystone", "keystoneSecretName": "keystone-auth",
        "authParameters": {"keystoneAuthParameters": {"authProtocol": "http", "port": 5000}}, "tokenExpirationSeconds": 5}});
    for given in [pod, role, account, manager] {
        let mut clean = given.clone();
        object(&mut clean);
        assert_eq!(clean, given);
    }
}
