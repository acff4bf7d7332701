//! The forms in which an adversary planted secrets, and those of the same class. Every secret is `ZQX` with a number of its
//! own, so that a leak says which one it is.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::json;

use super::super::{REDACTED, object, text};

/// Secrets in texts.
const TEXTS: [&str; 42] = [
    "password: |\n  ZQX001\nx: y\n",
    "password: >-\n  ZQX002\n",
    "password:\n  ZQX003\n",
    "{\"password\":\n   \"ZQX004\"}",
    "[\"--password\",\"ZQX005\"]",
    "exec cassandra --password ZQX006 --x",
    "mysql -u root -pZQX007",
    "redis-cli -a ZQX008 ping",
    "DB_PASS=ZQX009\nMYSQL_PWD=ZQX010\nREDIS_AUTH=ZQX011\nRABBITMQ_PASS=ZQX012",
    "password=\"two ZQX013\"\npassword = a,ZQX014\npassword: b;ZQX015\npassword: a<ZQX016\npassword=x)ZQX017",
    "{\"password\":\"a\\\"ZQX018\"}",
    "https://ZQX019@github.com/x",
    "amqp://u:pa/ZQX020@host/",
    "jwt eyJhbGciOiJIUzI1NiJ9.ZQX021.abc",
    "AKIAZQX022 and https://s3/x?X-Amz-Signature=ZQX023&sig=ZQX024&access_key=ZQX025",
    "rocommunity ZQX026\nsnmp_community = ZQX027\n[{community: ZQX028}]",
    "{\"auth_data\":{\"key_type\":\"md5\",\"key_items\":[{\"key_id\":0,\"key\":\"ZQX029\"}]}}",
    "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE----------BEGIN PRIVATE KEY-----\nZQX030\n-----END PRIVATE KEY-----\n",
    "{\"k\": \"-----BEGIN PRIVATE KEY-----\\nZQX031AAAA\\n-----END PRIVATE KEY-----\\n\"}",
    "env:\n- name: DB_PASSWORD\n  value: ZQX032\n",
    "{\"env\": [{\"name\": \"DB_PASSWORD\", \"value\": \"ZQX033\"}]}",
    "kind: Secret\ndata:\n  plain: WlFYMDM0ZQX034\n",
    "<password>ZQX035</password>",
    "Authorization: Token ZQX036\nAuthorization: ZQX037\nX-Auth-Key: ZQX038",
    "password = \"\"\"\nZQX039\n\"\"\"",
    "machine h login u password ZQX040\n",
    "host:5432:db:user:ZQX041",
    "key \"rndc\" {\n algorithm hmac-md5;\n secret \"ZQX042\";\n};\nsecret ZQX043;",
    "passwords: [ZQX044, ZQX045]\ntokens:\n- ZQX046\n",
    "user:ZQX047",
    "admin_password = x ZQX048",
    "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\nZQX049",
    "redis://:ZQX050@h:6379",
    "{\"client_secret\": [\"ZQX051\"], \"credentials\": {\"value\": \"ZQX052\"}}",
    "sha512 crypt: $6$ab$ZQX053",
    "PASSWORD=$(echo ZQX054)",
    "password ZQX055\n",
    "Пароль: ZQX056",
    "connect(user='u', pass='ZQX057', passcode='ZQX058', pin=1)",
    "PASSWORD=ZQX060\r\nX-Subject-Token: ZQX061",
    "sasl.jaas.config=org.apache.X required username=\"u\" password=\"ZQX062\";",
    "secretName=ZQX063 tokenFile: ZQX064 secretpath=ZQX065 PASSWORD_REF: ZQX066",
];

/// Further forms of the same classes.
const MORE: [&str; 84] = [
    "level=info body={\"client_secret\":[\"ZQX200\"],\"a\":1} done",
    "{\\\"token\\\":\\\"ZQX201 and ZQX202\\\",\\\"a\\\":1}",
    "err: {\"env\":[{\"value\":\"ZQX203\",\"name\":\"DB_PASSWORD\"}]} end",
    "- value: ZQX204\n  name: DB_PASSWORD\n",
    "headers: [{name: Authorization, value: ZQX205}]",
    "<property><name>db.password</name><value>ZQX206</value></property>",
    "<password type=\"plain\">ZQX207</password>",
    "command:\n- x\n- --password\n- ZQX208\n",
    "['--password', 'ZQX209']",
    "x -password ZQX210 -y",
    "java -Dpassword=ZQX211 -jar x",
    "/usr/bin/mysqldump -uroot -p'ZQX212' db",
    "sshpass -p ZQX213 ssh h",
    "curl -u admin:ZQX214 http://h",
    "curl -H 'Authorization: Basic ZQX215==' http://h",
    "curl -H \"X-Auth-Token: ZQX216\" http://h",
    "got Bearer ZQX217abc from x",
    "Cookie: a=ZQX218; b=ZQX219",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nZQX220\n",
    "MIIEvZQX221\nZQX222aaa==\n-----END PRIVATE KEY-----\nafter",
    "key: -----BEGIN EC PRIVATE KEY-----\\nZQX223\\n-----END EC PRIVATE KEY-----\\n rest",
    "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nZQX224\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
    "admin:$apr1$abcdefgh$ZQX225",
    "admin:$2y$05$ZQX226aaaaaaaaaaaaaaa",
    "requirepass ZQX227",
    "masterauth ZQX228",
    "enable password ZQX229",
    "the password is ZQX230.",
    "password='a'ZQX231",
    "PASSWORD=\"a\\\"b ZQX232\"",
    "GET /x?access_token=ZQX233&a=b HTTP/1.1",
    "https://h/x?token=ZQX234#f",
    "mongodb://u:ZQX235@h1,h2/db",
    "kubectl.kubernetes.io/last-applied-configuration: |\n  {\"data\":{\"x\":\"ZQX236\"}}\n",
    "  kapp.k14s.io/original: '{\"data\":{\"x\":\"ZQX237\"}}'",
    "kind: Secret\nmetadata:\n  annotations:\n    x: ZQX238\nstringData:\n  plain: ZQX239\n",
    "apply {\"kind\":\"Secret\",\"data\":{\"plain\":\"ZQX240\"}} failed",
    "--password=ZQX241",
    "password: first\n  ZQX242\nx: y",
    "password =\n    ZQX243\n",
    "password: !!str |\n  ZQX244\n",
    "  - password: ZQX245 and ZQX246\n    user: x",
    "export DB_PASS=ZQX247",
    "# password = ZQX248",
    "$db['password'] = 'ZQX249';",
    "password => ZQX250",
    "time=x level=error msg=\"login with password=ZQX251 failed\"",
    "{\"msg\":\"password=ZQX252\",\"level\":\"info\"}",
    "spec.password: Invalid value: \"ZQX253\": must be longer",
    "Erlang cookie is ABCDEFGHIJKLMNOPZQXA",
    "{\"a\": \"x\", \"b\": \"{\\\"password\\\": [\\\"ZQX254\\\"]}\"}",
    "rabbitmqctl set_cookie --erlang-cookie ZQX255",
    "admin_token ZQX256a",
    "swift_account: X-Storage-Token=ZQX257,x",
    "--from-literal=password=ZQX259",
    "{'password': 'it''ZQX260'}",
    "tokens: {\"ZQX261\": \"admin\"}",
    "secrets: [\n  ZQX262,\n  ZQX263\n]\nx: y",
    "glpat-ZQX264aaaaaaaaa",
    "-----BEGIN OPENSSH PRIVATE KEY-----\r\nZQX265\r\n-----END OPENSSH PRIVATE KEY-----\r\n",
    "snmpwalk -v2c -c ZQX266 10.0.0.1",
    "ftp://u:ZQX267@h and ssh://ZQX268@h",
    "db_pw: ZQX269",
    "CREATE ROLE x WITH PASSWORD 'ZQX270' AND LOGIN = true",
    "ALTER USER u IDENTIFIED BY 'ZQX271'",
    "create role x with encrypted password \"ZQX272\"",
    "logged in with password 'ZQX273'",
    "Password -> ZQX274",
    "| password | ZQX275 |",
    "**Password**: `ZQX276`",
    "DB_PASSWORD ZQX277",
    "rocommunity ZQX278 10.0.0.0/8",
    "neighbor 1.2.3.4 password 7 ZQX279",
    "GET /x?q=password%3DZQX280 HTTP/1.1",
    "zkCli.sh addauth digest super:ZQX281",
    "AGE-SECRET-KEY-1ZQX282AAAAAAAAAAAAAAAAAAAA",
    "post to https://hooks.slack.com/services/T0/B0/ZQX283 failed",
    "LDAP_BINDPW=ZQX284",
    "APP_JWT=ZQX285 APP_OTP=ZQX286",
    "VAULT_UNSEAL: ZQX287",
    "SESSION_SALT=ZQX288",
    "token 'ZQX289' is not valid",
    "  PASSWORD   'ZQX290'",
    "set password \"ZQX291\";",
];

fn leaks(given: &str) -> Option<String> {
    let clean = text(given);
    (clean.contains("ZQX") || !clean.contains(REDACTED)).then(|| format!("{given:?} is {clean:?}"))
}

#[test]
fn the_path_by_which_the_webhook_knows_the_api_server_goes_wherever_it_is_said() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    for path in ["/validate/", "/mutate/"] {
        let url = format!("https://127.0.0.1:40527{path}{TOKEN}");
        let said = format!("failed to call webhook: Post \"{url}?timeout=5s\": EOF");
        let kept = text(&said);
        assert!(!kept.contains(TOKEN), "{kept}");
        assert!(kept.contains(&format!("40527{path}{REDACTED}?timeout=5s")), "{kept}");
        let mut configuration = json!({"kind": "ValidatingWebhookConfiguration", "webhooks": [
            {"clientConfig": {"url": url}},
            {"clientConfig": {"service": {"name": "opensdn-webhook", "path": format!("{path}{TOKEN}")}}},
        ]});
        object(&mut configuration);
        let kept = configuration.to_string();
        assert!(!kept.contains(TOKEN) && kept.contains("127.0.0.1:40527"), "{kept}");
    }
}

#[test]
fn every_planted_form_of_a_secret_is_taken_out_of_a_text() {
    let leaks: Vec<String> = TEXTS.into_iter().chain(MORE).filter_map(leaks).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[test]
fn secrets_of_texts_are_taken_out_wherever_the_text_is() {
    let mut found = Vec::new();
    for given in TEXTS.into_iter().chain(MORE) {
        let mut map = json!({"kind": "ConfigMap", "data": {"x": given}});
        object(&mut map);
        if map.to_string().contains("ZQX") {
            found.push(format!("{given:?} is {map}"));
        }
        // As a JSON line of a log, behind a time.
        found.extend(leaks(&format!("2026-11-25T03:00:00Z {}\n", json!({"msg": given}))));
        // After other lines.
        found.extend(leaks(&format!("started\n{given}\nstopped\n")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn what_is_in_base64_is_judged_by_what_it_says() {
    for secret in [
        "{\"auths\":{\"r\":{\"auth\":\"hunter2\"}}}",
        "apiVersion: v1\nusers:\n- user:\n    token: hunter2\n",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n-----END PRIVATE KEY-----\n",
    ] {
        let once = STANDARD.encode(secret);
        for given in [once.clone(), STANDARD.encode(&once), URL_SAFE.encode(secret)] {
            assert_eq!(text(&format!("x: {given}\ny")), format!("x: {REDACTED}\ny"), "{secret}");
        }
        // Wrapped, as `base64` writes it.
        let lines: Vec<String> = once
            .as_bytes()
            .chunks(76)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        assert_eq!(
            text(&format!("x: |\n  {}\ny: z", lines.join("\n  "))),
            format!("x: |\n  {REDACTED}\ny: z")
        );
    }
}

#[test]
fn terms_of_erlang_and_statements_of_junos_lose_their_secrets() {
    for (given, left) in [
        (r#"{default_pass, <<"hunter2">>}."#, r#"{default_pass, <<"<redacted>">>}."#),
        (
            r#"[{rabbit,[{password,"a\"b"},{port,5672}]}]"#,
            r#"[{rabbit,[{password,"<redacted>"},{port,5672}]}]"#,
        ),
        (
            "authentication-key \"$9$abc\"; ## SECRET-DATA",
            "authentication-key \"<redacted>\"; ## SECRET-DATA",
        ),
        ("    authentication-key hunter2;\n", "    authentication-key <redacted>;\n"),
        (
            "set protocols bgp group a authentication-key hunter2",
            "set protocols bgp group a authentication-key <redacted>",
        ),
        (
            r#"{default_user, <<"guest">>}, {name, "password"}"#,
            r#"{default_user, <<"guest">>}, {name, "password"}"#,
        ),
        ("the routing-key orders; x", "the routing-key orders; x"),
    ] {
        assert_eq!(text(given), left);
        assert_eq!(text(left), left, "a second time changes nothing");
    }
}

#[test]
fn what_is_compressed_is_taken_out_however_short_it_is() {
    use std::io::Write as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"pw=1").unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(br#"{"password":"hunter2hunter2"}"#).unwrap();
    let made = [STANDARD.encode(gzip.finish().unwrap()), STANDARD.encode(zlib.finish().unwrap())];
    let others = [
        "QlpoOTFBWSZTWWZnQ0IAAAHBgAA",
        "/Td6WFoAAATm1rRGAgAhARYAAAA",
        "KLUv/SQOcQAAeyJwYXNzd29yZCI6",
    ];
    for word in made.iter().map(String::as_str).chain(others) {
        assert_eq!(text(&format!("a: {word}")).trim_end_matches('='), "a: <redacted>", "{word}");
    }
    let name = "eNodeBIdentityOfTheRadioNetwork eJournalOfTheWholeCluster1";
    assert_eq!(text(name), name);
}

#[test]
fn one_of_several_is_a_secret_as_the_only_one_is() {
    for name in [
        "DB_PASS_OLD",
        "DB_PASS1",
        "PASS2",
        "ADMIN_PWD_2",
        "LDAP_BIND_PW1",
        "PSK2",
        "SNMP_COMMUNITY2",
        "SESSION_KEYS",
    ] {
        assert_eq!(text(&format!("{name}=hunter2")), format!("{name}=<redacted>"));
    }
    for name in ["PORT_2", "COMPASS2", "labelKeys", "PATH_OLD"] {
        assert_eq!(text(&format!("{name}=plain")), format!("{name}=plain"));
    }
    assert_eq!(text("curl --user a:hunter2 http://h"), "curl --user <redacted> http://h");
}
