//! The files of the components, rendered from the templates in `templates/`. A name that a template
//! does not know is an error, and a value is written as the file's format needs it: quoted in a
//! script or in a file of named, without a line break in an ini file, with its backslashes doubled in Java's
//! properties.

use minijinja::value::ValueKind;
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value,
};
use serde::Serialize;

use crate::component::Template;

const SHELL: &str = "sh";
const INI: &str = "ini";
/// Java's.
const PROPERTIES: &str = "properties";
const NAMED: &str = "named";
const JAVASCRIPT: &str = "js";
const JSON: &str = "json";
const YAML: &str = "yaml";

/// A file that cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("render {template}")]
pub struct TemplateError {
    template: String,
    source: Error,
}

/// What a value has that no file takes.
pub(crate) const LINE_BREAKS: [char; 3] = ['\n', '\r', '\0'];
const HAS_LINE_BREAK: &str = "a value has a line break";

impl TemplateError {
    /// Whether a value is the reason, and not the template. What a template includes says it as a cause.
    pub(crate) fn is_line_break(&self) -> bool {
        let causes = std::iter::successors(Some(&self.source), |error| {
            std::error::Error::source(*error)?.downcast_ref::<minijinja::Error>()
        });
        causes.last().and_then(minijinja::Error::detail) == Some(HAS_LINE_BREAK)
    }
}

/// All templates, parsed once.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
}

impl Templates {
    /// Parses these.
    ///
    /// # Errors
    /// One of them is no template.
    pub fn new(templates: impl IntoIterator<Item = Template>) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_keep_trailing_newline(true);
        environment.set_auto_escape_callback(|name| match name.rsplit_once('.') {
            Some((_, SHELL)) => AutoEscape::Custom(SHELL),
            Some((_, INI)) => AutoEscape::Custom(INI),
            Some((_, PROPERTIES)) => AutoEscape::Custom(PROPERTIES),
            Some((_, NAMED)) => AutoEscape::Custom(NAMED),
            Some((_, JAVASCRIPT)) => AutoEscape::Custom(JAVASCRIPT),
            Some((_, JSON)) => AutoEscape::Custom(JSON),
            Some((_, YAML)) => AutoEscape::Custom(YAML),
            _ => AutoEscape::None,
        });
        environment.set_formatter(write);
        for (name, source) in templates {
            let added = environment.add_template(name, source);
            added.map_err(|source| TemplateError { template: name.to_owned(), source })?;
        }
        Ok(Self { environment })
    }

    /// Renders one of them with these values.
    ///
    /// # Errors
    /// There is no such template, it names a value that is not there, or a value cannot be written in
    /// its format.
    pub fn render(&self, template: &str, values: impl Serialize) -> Result<String, TemplateError> {
        let rendered = self.environment.get_template(template);
        let rendered = rendered.and_then(|template| template.render(values));
        rendered.map_err(|source| TemplateError { template: template.to_owned(), source })
    }
}

fn write(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    let format = match state.auto_escape() {
        AutoEscape::Custom(format) => format,
        _ => return Err(refused(&format!("{} has no known format", state.name()))),
    };
    if format == JAVASCRIPT && value.kind() == ValueKind::Seq {
        let items = value.try_iter()?.map(|item| written(format, &item));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        return Ok(write!(out, "[{}]", items.join(", "))?);
    }
    Ok(out.write_str(&written(format, value)?)?)
}

/// A value as the format needs it.
fn written(format: &str, value: &Value) -> Result<String, Error> {
    let text = match value.kind() {
        // Elsewhere it is as Python has it.
        ValueKind::Bool if format == JAVASCRIPT => return Ok(value.is_true().to_string()),
        ValueKind::Number | ValueKind::Bool => return Ok(value.to_string()),
        ValueKind::String => value.to_string(),
        kind => return Err(refused(&format!("a value is neither text nor number but {kind}"))),
    };
    if text.contains(LINE_BREAKS) {
        return Err(refused(HAS_LINE_BREAK));
    }
    Ok(match format {
        JSON => serde_json::Value::String(text).to_string(),
        // What a template itself has put together.
        SHELL if value.is_safe() => text,
        SHELL => format!("'{}'", text.replace('\'', r"'\''")),
        JAVASCRIPT => literal(&text),
        PROPERTIES => property(&text),
        YAML => quoted_for_yaml(&text),
        NAMED => format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#)),
        _ => text,
    })
}

/// A literal of JavaScript, also of the one before ES2019 and within a page.
fn literal(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\\' | '\'' | '"' => format!("\\{letter}"),
        '<' | '>' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(letter)),
        _ => letter.to_string(),
    });
    format!("'{}'", letters.collect::<String>())
}

/// A value as `java.util.Properties` reads it back: it drops space before a value, takes a backslash for the begin of
/// something else, and reads Latin-1.
fn property(text: &str) -> String {
    let is_space = |letter: char| matches!(letter, ' ' | '\t' | '\x0c');
    let mut out = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        match letter {
            '\\' => out.push_str(r"\\"),
            '\t' => out.push_str(r"\t"),
            '\x0c' => out.push_str(r"\f"),
            letter if at == 0 && is_space(letter) => out.extend(['\\', letter]),
            letter if letter.is_ascii() => out.push(letter),
            letter => {
                let units = &mut [0; 2];
                for unit in letter.encode_utf16(units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

/// In double quotes a text is nothing but itself. What is not ASCII is escaped, as YAML has some that no file may have.
fn quoted_for_yaml(text: &str) -> String {
    let escaped = |one: char| match one {
        '"' | '\\' => format!("\\{one}"),
        ' '..='~' => one.to_string(),
        other => format!("\\U{:08x}", u32::from(other)),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// Without the value, which may be a secret.
fn refused(why: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, why.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(name: &'static str, source: &'static str) -> Templates {
        let mut templates = Templates::new(crate::components::templates()).unwrap();
        templates.environment.add_template(name, source).unwrap();
        templates
    }

    #[test]
    fn a_value_is_one_text_of_json_whatever_is_in_it() {
        let templates = one("test.json", r#"{"a": {{ value }}, "b": {{ port }}}"#);
        let value = "a\"b\\c}, {\u{1}";
        let rendered = templates.render("test.json", json!({"value": value, "port": 1})).unwrap();
        let read: serde_json::Value = serde_json::from_str(&rendered).unwrap();
        assert_eq!(read, json!({"a": value, "b": 1}));
    }

    #[test]
    fn a_value_is_one_word_of_a_script_whatever_is_in_it() {
        let templates = one("test.sh", "run {{ value }} {{ port }}");
        let rendered = templates.render("test.sh", json!({"value": "a'b $(id) `x`", "port": 1}));
        assert_eq!(rendered.unwrap(), r"run 'a'\''b $(id) `x`' 1");
    }

    #[test]
    fn a_value_is_one_string_of_named_whatever_is_in_it() {
        let templates = one("test.named", "file {{ value }} versions {{ count }};");
        let values = json!({"value": r#"a"; }; include "b\"#, "count": 3});
        let rendered = templates.render("test.named", values).unwrap();
        assert_eq!(rendered, r#"file "a\"; }; include \"b\\" versions 3;"#);
    }

    #[test]
    fn a_value_is_one_text_of_yaml_whatever_is_in_it() {
        let templates = one("test.yaml", "a: {{ value }}\nb: {{ port }}\n");
        for value in [
            "plain",
            "",
            "yes",
            "~",
            "1.0",
            "a: b",
            "a #b",
            "{a}",
            "*a",
            "!!int 1",
            "'",
            "a\"b\\n",
            "%TAG",
            "- a",
            "a\tb",
            "\u{7f}\u{85}\u{2028}\u{feff}",
            "\u{1f600}",
            "@a@",
            "---",
        ] {
            let rendered = templates.render("test.yaml", json!({"value": value, "port": 1}));
            let rendered = rendered.unwrap();
            assert!(rendered.is_ascii(), "{rendered}");
            let read: serde_json::Value = serde_saphyr::from_str(&rendered).unwrap();
            assert_eq!(read, json!({"a": value, "b": 1}), "{rendered}");
        }
    }

    #[test]
    fn a_line_break_is_no_value_of_a_file() {
        for name in ["test.sh", "test.ini", "test.named", "test.properties", "test.yaml"] {
            let templates = one(name, "key = {{ value }}");
            for value in ["a\nother = b", "a\rb"] {
                let error = templates.render(name, json!({ "value": value })).unwrap_err();
                let why = error.source.to_string();
                assert!(why.contains("line break") && !why.contains("other"), "{why}");
            }
            assert!(templates.render(name, json!({"value": "a = b"})).is_ok());
        }
    }

    #[test]
    fn a_line_break_is_the_reason_also_where_an_included_template_has_the_value() {
        let mut templates = one("inner.sh", "key={{ value }}");
        let outer = "{% include \"inner.sh\" %}";
        templates.environment.add_template("outer.sh", outer).unwrap();
        let why = |values| templates.render("outer.sh", values).unwrap_err();
        assert!(why(json!({"value": "a\nb"})).is_line_break());
        assert!(!why(json!({})).is_line_break());
    }

    #[test]
    fn a_property_is_read_back_as_it_was_whatever_is_in_it() {
        let templates = one("test.properties", "key={{ value }}\nport={{ port }}\n");
        for (value, expected) in [
            ("a=b:c#d!e 'f' \"g\"", "a=b:c#d!e 'f' \"g\""),
            (r"C:\new", r"C:\\new"),
            // The last backslash of a line would join the next to it.
            (r"end\", r"end\\"),
            ("  two spaces", r"\  two spaces"),
            ("\tt\x0c", r"\tt\f"),
            ("é€𝄞", r"\u00e9\u20ac\ud834\udd1e"),
            ("", ""),
        ] {
            let rendered = templates.render("test.properties", json!({"value": value, "port": 1}));
            assert_eq!(rendered.unwrap(), format!("key={expected}\nport=1\n"), "{value:?}");
        }
    }

    #[test]
    fn a_value_is_one_literal_of_javascript_whatever_is_in_it() {
        let templates = one("test.js", "a = {{ value }};");
        let rendered = |value| templates.render("test.js", json!({ "value": value })).unwrap();
        assert_eq!(rendered(json!("it's")), r"a = 'it\'s';");
        assert_eq!(rendered(json!(r#"'; b = "\"#)), r#"a = '\'; b = \"\\';"#);
        assert_eq!(rendered(json!("</script>\u{2028}")), r"a = '\u003c/script\u003e\u2028';");
        // The script of a container fills it in.
        let token = "@credentials/own/password@";
        assert_eq!(rendered(json!(token)), format!("a = '{token}';"));
        assert_eq!(rendered(json!(["x'", 1])), r"a = ['x\'', 1];");
        assert_eq!([rendered(json!(8143)), rendered(json!(true))], ["a = 8143;", "a = true;"]);
        for value in [json!("b\nc"), json!(["b\rc"]), json!([["nested"]]), json!({"a": 1})] {
            assert!(templates.render("test.js", json!({ "value": value })).is_err(), "{value}");
        }
    }

    #[test]
    fn an_unknown_name_or_format_is_an_error() {
        let templates = one("test.ini", "{{ absent }}");
        assert!(templates.render("test.ini", json!({})).is_err());
        let templates = one("test.toml", "{{ value }}");
        assert!(templates.render("test.toml", json!({"value": "a"})).is_err());
        assert!(templates.render("no such template", json!({})).is_err());
    }
}
