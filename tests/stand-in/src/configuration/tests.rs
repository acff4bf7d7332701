//! Each format is read as its program reads it, and what cannot be meant is refused with its place.

use std::path::{Path, PathBuf};

use super::*;
use crate::component::key;

fn read(format: Format, text: &str) -> Result<Configuration, Error> {
    let path = PathBuf::from("/etc/contrail/it.conf");
    let mut configuration = Configuration { files: vec![path], ..Configuration::default() };
    configuration.add(format, Path::new("/etc/contrail/it.conf"), text)?;
    configuration.check_values(format)?;
    Ok(configuration)
}

#[track_caller]
fn refuses(format: Format, text: &str, wanted: &str) {
    let said = read(format, text).unwrap_err().to_string();
    assert!(said.contains(wanted), "{said}");
    assert!(said.starts_with("/etc/contrail/it.conf"), "{said}");
}

#[test]
fn ini_keeps_case_and_what_looks_like_a_comment_in_a_value() {
    let text = "# comment\n; another\ncert=/a.pem\n[DEFAULTS]\nrabbit_password=a#b;c%d:e=f\n\
                [global]\nWEB_SERVER = 10.0.0.1\n";
    let configuration = read(Format::Ini, text).unwrap();
    assert_eq!(configuration.get(key("", "cert")), Some("/a.pem"));
    assert_eq!(configuration.get(key("DEFAULTS", "rabbit_password")), Some("a#b;c%d:e=f"));
    assert_eq!(configuration.get(key("global", "WEB_SERVER")), Some("10.0.0.1"));
    assert_eq!(configuration.get(key("global", "web_server")), None);
    refuses(Format::Ini, "[DEFAULTS]\nhalf a line\n", "line 2: neither a section nor key=value");
    refuses(Format::Ini, "[DEFAULTS\n", "line 1: found opening bracket");
    refuses(Format::Ini, "[A]\nlisten_port=80x\n", "[A] listen_port: \"80x\" is no port");
    refuses(Format::Ini, "[A]\nport=\n", "[A] port: \"\" is no port");
}

#[test]
fn placeholder_is_refused_in_any_format_without_a_word_of_the_value() {
    refuses(Format::Ini, "[A]\nhostip=${POD_IP}\n", "[A] hostip: a placeholder was left");
    refuses(Format::Ini, "[A]\nhostip={{ .PodIP }}\n", "{{ … }}");
    refuses(Format::Ini, "[A]\nrabbit_password=<nil>\n", "<nil>");
    refuses(Format::Ini, "[A]\nrabbit_user=<no value>\n", "<no value>");
    refuses(Format::Named, "options { directory \"{{ .D }}\"; };", "[options] directory");
    refuses(Format::JavaScript, "var c = {};\nc.a = '${X}';", "[c] a: a placeholder");
    let said = read(Format::Ini, "[A]\npassword=secret${X}\n").unwrap_err().to_string();
    assert!(!said.contains("secret"), "{said}");
    // What Python and people write, and no template.
    assert!(read(Format::Ini, "[A]\npool={'domain': {'a': 'b'}}\npassword=a${$}b\n").is_ok());
}

#[test]
fn named_has_the_words_of_its_blocks() {
    let text = "// one\n# two\n/* three\n */options {\n  directory \"/etc/contrail/dns\";\n  \
                listen-on port 53 { any; };\n};\nkey \"rndc-key\" {\n  secret \"xvysmOR8lnUQRBcunkC6vg==\";\n};\n\
                controls {\n  inet 127.0.0.1 port 8094\n  allow { 127.0.0.1; } keys { \"rndc-key\"; };\n};\n";
    let configuration = read(Format::Named, text).unwrap();
    assert_eq!(configuration.get(key("options", "directory")), Some("/etc/contrail/dns"));
    assert_eq!(configuration.get(key("options", "listen-on")), Some("port 53"));
    let secret = configuration.get(key("key rndc-key", "secret"));
    assert_eq!(secret, Some("xvysmOR8lnUQRBcunkC6vg=="));
    let inet = configuration.get(key("controls", "inet"));
    assert_eq!(inet, Some("127.0.0.1 port 8094 allow keys"));
    refuses(Format::Named, "options {\n directory \"/x\n};", "line 2: a string has no end");
    refuses(Format::Named, "options {\n directory \"/x\" };", "line 2: a } without ;");
    refuses(Format::Named, "options {\n directory \"/x\";\n", "ends inside a statement");
}

#[test]
fn web_ui_has_members_lists_and_no_code() {
    let text = "/* c */ var config = {};\nconfig.cnfg = {}; // x\n\
                config.cnfg.server_ip = ['10.0.0.1', \"10.0.0.2\"];\nconfig.kue = {};\n\
                config.kue.ui_port = '3002'\nconfig.redisDBIndex = 3;\nmodule.exports = config;\n\
                config.staticAuth = [];\nconfig.staticAuth[0] = {};\n\
                config.staticAuth[0].password = 'it\\'s';\n";
    let configuration = read(Format::JavaScript, text).unwrap();
    let servers = configuration.get(key("config.cnfg", "server_ip"));
    assert_eq!(servers, Some("10.0.0.1 10.0.0.2"));
    assert_eq!(configuration.get(key("config.kue", "ui_port")), Some("3002"));
    assert_eq!(configuration.get(key("config", "redisDBIndex")), Some("3"));
    assert_eq!(configuration.get(key("config.staticAuth.0", "password")), Some("it's"));
    // A password with a quote, as it comes out of a template that does not quote.
    let unquoted = "var config = {};\nconfig.password = 'it's';\n";
    refuses(Format::JavaScript, unquoted, "line 2: ");
    refuses(Format::JavaScript, "var c = {};\nc.a = 'b\n", "line 2: a string has no end");
    refuses(Format::JavaScript, "var c = {};\nc.a = f();", "something else than a literal");
    refuses(Format::JavaScript, "d.a = 1;", "not declared");
}

#[test]
fn shell_fills_in_what_the_environment_has_and_runs_nothing() {
    let environment = |name: &str| (name == "POD_IP").then(|| "10.0.0.1".to_owned());
    let text = "export SSL_ENABLE=true\n\n# comment\nexport C=\"/etc/server-${POD_IP}.crt\"\nD='$C'\nE=$C # e\n";
    let settings = environment::settings(text, environment).unwrap();
    let values: Vec<_> = settings.iter().map(|setting| setting.value.as_str()).collect();
    assert_eq!(values, ["true", "/etc/server-10.0.0.1.crt", "$C", "/etc/server-10.0.0.1.crt"]);
    let stops = |text: &str| environment::settings(text, environment).unwrap_err().what;
    assert_eq!(stops("A=${UNSET}"), "${UNSET} is not set");
    assert_eq!(stops("A=$(reboot)"), "a command, or a $ without a name");
    assert_eq!(stops("A=b; reboot"), "; outside of quotes");
    assert_eq!(stops("A=\"b"), "a quote has no end");
    assert_eq!(stops("A=b c"), "more than one word; quote it");
    assert_eq!(stops("reboot"), "not an assignment");
}

#[test]
fn missing_and_empty_keys_are_not_the_same() {
    let configuration = read(Format::Ini, "[A]\nb=\n").unwrap();
    let said = |key| configuration.require(key).unwrap_err().to_string();
    let place = "/etc/contrail/it.conf: ";
    assert_eq!(
        said(key("A", "b")),
        format!("{place}[A] b: there is no value; give it one in the template")
    );
    assert_eq!(
        said(key("A", "c")),
        format!("{place}[A] c: there is no such key; add it to the template")
    );
    assert_eq!(
        said(key("C", "c")),
        format!("{place}[C] c: there is no such section; add it to the template")
    );
}
