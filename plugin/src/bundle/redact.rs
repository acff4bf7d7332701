//! Takes secrets out of what is collected (pure): out of objects by the names of their fields, out of every text by what
//! a secret looks like there. What is taken out is named, so that a reader sees that there was something.

use serde_json::{Map, Value};

/// What is written in the place of a secret.
pub(crate) const REDACTED: &str = "<redacted>";

/// Parts of names of fields, variables and settings whose values are secrets.
const WORDS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "cookie",
    "credential",
    "privatekey",
    "apikey",
    "authkey",
    "keydata",
    "dockerconfig",
    "connectionstring",
    "bearer",
];
/// Ends of names that name where a secret is, or say something about it.
const HARMLESS: [&str; 12] = [
    "name",
    "ref",
    "refs",
    "file",
    "path",
    "namespace",
    "enabled",
    "seconds",
    "provider",
    "type",
    "volume",
    "method",
];
/// Names that end with `key`, and whose values say nothing.
const KEYS: [&str; 5] = ["key", "topologykey", "publickey", "labelkey", "optionalkey"];

/// Whether the value of something that is called so is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    if HARMLESS.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    WORDS.iter().any(|word| name.contains(word))
        || (name.ends_with("key") && !KEYS.contains(&name.as_str()))
        || ["pass", "pwd", "auth", "community"].contains(&name.as_str())
}

/// The object without its secrets, and without what nobody reads.
pub(crate) fn object(value: &mut Value) {
    let kind = value.pointer("/kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(metadata) = value.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // It is the whole object again, as a text.
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    if let Some(object) = value.as_object_mut() {
        for key in ["data", "stringData"] {
            if kind == "Secret"
                && let Some(Value::Object(data)) = object.get_mut(key)
            {
                data.iter_mut().for_each(|(_, value)| *value = sized(value));
            }
        }
        if let Some(Value::Object(data)) = object.get_mut("binaryData") {
            data.iter_mut().for_each(|(_, value)| *value = sized(value));
        }
    }
    within(value);
}

/// How long it was, which helps to see that it is empty.
fn sized(value: &Value) -> Value {
    let length = value.as_str().map_or(0, str::len);
    Value::String(format!("{REDACTED} ({length} bytes)"))
}

fn within(value: &mut Value) {
    match value {
        Value::Object(map) => fields(map),
        Value::Array(items) => {
            // `--password` and behind it the password.
            let mut is_next = false;
            for item in items {
                let flag = item
                    .as_str()
                    .map(|text| text.starts_with('-') && !text.contains('=') && is_secret(text));
                match item {
                    Value::String(text) if is_next => *text = REDACTED.to_owned(),
                    item => within(item),
                }
                is_next = flag.unwrap_or_default();
            }
        }
        Value::String(text) => *text = self::text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn fields(map: &mut Map<String, Value>) {
    // A variable of a container: its name says what its value is.
    let is_named = map.get("name").and_then(Value::as_str).is_some_and(is_secret);
    for (key, value) in map.iter_mut() {
        let is_value = is_named && key == "value";
        match value {
            Value::String(text)
                if (is_value || is_secret(key))
                    && !text.is_empty()
                    && !text.starts_with(REDACTED) =>
            {
                *text = REDACTED.to_owned();
            }
            Value::Number(_) if is_value || is_secret(key) => *value = REDACTED.into(),
            value => within(value),
        }
    }
}

/// The text without what looks like a secret, line by line.
pub(crate) fn text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        let is_begin = line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
        if in_key || is_begin {
            if is_begin {
                clean.push_str(REDACTED);
                clean.push_str(" private key\n");
            }
            in_key = !line.contains("-----END");
            continue;
        }
        clean.push_str(&of_line(line));
    }
    clean
}

fn of_line(line: &str) -> String {
    let line = urls(line);
    let mut clean = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some((before, name, between, value, after)) = setting(rest) {
        clean.push_str(before);
        clean.push_str(name);
        clean.push_str(between);
        clean.push_str(if value.is_empty() { "" } else { REDACTED });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

/// The first secret setting of a line: what is before it, its name, what is between, its value, and the rest.
fn setting(line: &str) -> Option<(&str, &str, &str, &str, &str)> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let mut start = 0;
    while let Some(found) = line.get(start..)?.find(is_of_name) {
        let begin = start + found;
        let name_and_rest = line.get(begin..)?;
        let length =
            name_and_rest.find(|letter| !is_of_name(letter)).unwrap_or(name_and_rest.len());
        let (name, behind) = name_and_rest.split_at_checked(length)?;
        start = begin + length;
        let is_bearer = name.eq_ignore_ascii_case("bearer") || name.eq_ignore_ascii_case("basic");
        if !is_bearer && !is_secret(name) {
            continue;
        }
        let is_flag = name_and_rest.starts_with("--");
        let Some((between, behind)) = separator(behind, is_bearer || is_flag) else { continue };
        let (value, after) = value(behind);
        return Some((line.get(..begin)?, name, between, value, after));
    }
    None
}

/// `=`, `:`, `" : "` and their like; a blank alone before a quote, as of `secret "…";`, and behind Bearer and a flag.
fn separator(text: &str, is_word: bool) -> Option<(&str, &str)> {
    let is_part = |letter: char| "=:\"'\\ \t>".contains(letter);
    let length = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let (between, rest) = text.split_at_checked(length)?;
    let counts = between.contains(['=', ':', '>'])
        || (between.trim_start() != between && between.ends_with(['"', '\'']))
        || (is_word && between.starts_with(' '));
    counts.then_some((between, rest))
}

/// Until a quote, a blank, or what ends a field.
fn value(text: &str) -> (&str, &str) {
    let is_end = |letter: char| letter.is_whitespace() || "\"',;}])<\\".contains(letter);
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// `https://user:password@host` without the password.
fn urls(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let end = after.find(|letter: char| letter.is_whitespace() || "/\"'".contains(letter));
        let (authority, behind) = after.split_at(end.unwrap_or(after.len()));
        match authority
            .rsplit_once('@')
            .and_then(|(login, host)| Some((login.split_once(':')?.0, host)))
        {
            Some((user, host)) => clean.push_str(&format!("{user}:{REDACTED}@{host}")),
            None => clean.push_str(authority),
        }
        rest = behind;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_secrets_are_known_and_names_of_where_they_are_stay() {
        for name in [
            "adminPassword",
            "RABBITMQ_PASSWORD",
            "erlangCookie",
            "k8sToken",
            "metadataProxySecret",
            "vrouterDecryptKey",
            "client-key-data",
            "AWS_SECRET_ACCESS_KEY",
            "ssl.key",
            "auth",
            "tls.key",
        ] {
            assert!(is_secret(name), "{name}");
        }
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
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn texts_lose_their_secrets_and_keep_the_rest() {
        let cases = [
            ("password=hunter2 user=x", "password=<redacted> user=x"),
            ("  admin_password : hunter2\n", "  admin_password : <redacted>\n"),
            ("export RABBIT_PASSWORD='hunter2'", "export RABBIT_PASSWORD='<redacted>'"),
            ("{\"token\": \"hunter2\", \"a\": 1}", "{\"token\": \"<redacted>\", \"a\": 1}"),
            ("{\\\"token\\\":\\\"hunter2\\\"}", "{\\\"token\\\":\\\"<redacted>\\\"}"),
            ("  secret \"hunter2\";", "  secret \"<redacted>\";"),
            ("Authorization: Bearer hunter2", "Authorization: Bearer <redacted>"),
            ("amqp://guest:hunter2@host:5673/", "amqp://guest:<redacted>@host:5673/"),
            ("http://host:8082/a", "http://host:8082/a"),
            ("run --admin-password hunter2 --x y", "run --admin-password <redacted> --x y"),
            ("X-Auth-Token: hunter2", "X-Auth-Token: <redacted>"),
            ("a secret is missing", "a secret is missing"),
            (
                "a\n-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nb",
                "a\n<redacted> private key\nb",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(text(given), expected);
        }
    }

    #[test]
    fn an_object_keeps_its_form_and_loses_its_secrets() {
        let mut pod = json!({"kind": "Pod", "metadata": {"name": "p", "managedFields": [1], "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "hunter2", "a": "password=hunter2"}},
            "spec": {"containers": [{"args": ["--password", "hunter2", "--token=hunter2", "x"],
                "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "A", "value": "b"},
                    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}],
                "tolerations": [{"key": "k"}]}});
        object(&mut pod);
        let text = pod.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(pod["spec"]["containers"][0]["env"][1]["value"], "b");
        assert_eq!(pod["spec"]["containers"][0]["env"][2]["valueFrom"]["secretKeyRef"]["key"], "k");
        assert_eq!(pod["spec"]["tolerations"][0]["key"], "k");
        let mut secret =
            json!({"kind": "Secret", "data": {"a": "aHVudGVyMg=="}, "metadata": {"name": "s"}});
        object(&mut secret);
        assert_eq!(secret["data"]["a"], "<redacted> (12 bytes)");
    }
}
