//! The grammar of the templates: `{{name}}` is filled in; lines between `{{#kinds}}` and
//! `{{/kinds}}`, which stand alone on their lines, are written once for each kind.

use crate::kind::Kind;

const BEGIN: &str = "{{#kinds}}";
const END: &str = "{{/kinds}}";

/// What replaces the placeholders of a template: name and text.
pub(crate) type Places = Vec<(&'static str, String)>;

/// The text with its places filled in.
pub(crate) fn fill(text: &str, places: &Places, kinds: &[Kind]) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, repeated, after)) = next_block(rest) {
        filled.push_str(before);
        for kind in kinds {
            filled.push_str(&put(repeated, &of_kind(kind)));
        }
        rest = after;
    }
    filled.push_str(rest);
    put(&filled, places)
}

/// The places that depend on the kind.
pub(crate) fn of_kind(kind: &Kind) -> Places {
    vec![
        ("kind", kind.kind.clone()),
        ("group", kind.group.clone()),
        ("api-version", kind.api_version()),
        ("kind-file", kind.words('-')),
        ("kind-function", kind.words('_')),
    ]
}

pub(crate) fn put(text: &str, places: &Places) -> String {
    let mut filled = text.to_owned();
    for (name, value) in places {
        filled = filled.replace(&format!("{{{{{name}}}}}"), value);
    }
    filled
}

/// What stands before the next block, in it and after it.
fn next_block(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(&format!("{BEGIN}\n"))?;
    let (repeated, after) = rest.split_once(&format!("{END}\n"))?;
    Some((before, repeated, after))
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn fills_places_and_repeats_what_is_said_of_each_kind() {
        let kinds = ["v1/Pod", "apps/v1/Deployment"].map(|text| text.parse().unwrap());
        let text = "{{name}} ${{ left alone }}\n{{#kinds}}\n- {{api-version}} {{kind}} of {{name}}\n{{/kinds}}\nend\n";
        assert_eq!(
            fill(text, &vec![("name", "mine".to_owned())], &kinds),
            "mine ${{ left alone }}\n- v1 Pod of mine\n- apps/v1 Deployment of mine\nend\n"
        );
    }
}
