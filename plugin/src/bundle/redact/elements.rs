//! Elements of XML that are called like a secret: pages of introspect have them within each other
//! (`<auth_keys type="list"><list><element>KEY</element></list></auth_keys>`).

use super::REDACTED;
use super::names::is_secret;

/// The page without what is in such elements.
pub(crate) fn without(page: &str) -> String {
    let mut clean = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once('<') {
        clean.push_str(before);
        clean.push('<');
        let Some((tag, content)) = after.split_once('>') else {
            rest = after;
            continue;
        };
        clean.push_str(tag);
        clean.push('>');
        let name = tag.split(|letter: char| letter.is_whitespace()).next().unwrap_or_default();
        let is_open = !name.starts_with(['/', '?', '!']) && !tag.ends_with('/');
        rest = content;
        if is_open && is_secret(name) {
            clean.push_str(REDACTED);
            // Of one that has no end nothing is kept.
            rest = content
                .find(&format!("</{name}"))
                .map_or("", |end| content.get(end..).unwrap_or_default());
        }
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_in_an_element_called_like_a_secret_goes_and_the_rest_stays() {
        let page = "<BgpNeighborResp><peer type=\"string\">m2</peer><auth_type type=\"string\">MD5</auth_type>\
                    <auth_keys type=\"list\"><list type=\"string\" size=\"1\"><element>hunter2</element></list></auth_keys>\
                    <state>Established</state></BgpNeighborResp>";
        let clean = without(page);
        assert!(
            !clean.contains("hunter2")
                && clean.contains("<auth_keys type=\"list\"><redacted></auth_keys>"),
            "{clean}"
        );
        assert!(
            clean.contains("MD5")
                && clean.ends_with("<state>Established</state></BgpNeighborResp>"),
            "{clean}"
        );
        assert_eq!(without("<a><password/>x</a> 1 < 2"), "<a><password/>x</a> 1 < 2");
        assert_eq!(without("<a>b</a><password>hunter2"), "<a>b</a><password><redacted>");
    }
}
