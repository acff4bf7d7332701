//! XML as far as pages of introspect need it: elements and their texts. Attributes are passed over and a DTD is refused, so
//! that the time that a page takes grows with its length and with nothing else, whoever has written it.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};

/// Pages of Sandesh are some ten deep.
const DEEPEST: usize = 64;

/// An element.
#[derive(Debug, Default)]
pub(super) struct Element {
    name: String,
    text: String,
    children: Vec<Self>,
}

/// Why a text is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum XmlError {
    #[error("the page is no XML")]
    Syntax(#[from] quick_xml::Error),
    #[error("the page has a DTD")]
    Dtd,
    #[error("elements of the page are more than {DEEPEST} deep")]
    TooDeep,
    #[error("the page ends within an element, or has none")]
    Incomplete,
}

/// The element that has those of the page as its children.
pub(super) fn parse(page: &str) -> Result<Element, XmlError> {
    let mut reader = Reader::from_str(page);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event()? {
            Event::Start(start) => {
                if open.len() > DEEPEST {
                    return Err(XmlError::TooDeep);
                }
                open.push(Element::named(start.local_name().into_inner()));
            }
            Event::Empty(start) => {
                add(&mut open, Element::named(start.local_name().into_inner()));
            }
            Event::End(_) => {
                let closed = open.pop().unwrap_or_default();
                add(&mut open, closed);
            }
            Event::Text(text) => write(&mut open, &text),
            Event::CData(text) => write(&mut open, &text.into_inner()),
            Event::GeneralRef(reference) => write(&mut open, &resolved(&reference)?),
            Event::DocType(_) => return Err(XmlError::Dtd),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(whole), true) if !whole.children.is_empty() => Ok(whole),
        _ => Err(XmlError::Incomplete),
    }
}

fn add(open: &mut [Element], child: Element) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(child);
    }
}

fn write(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

/// `lt`, or a character by its number; nothing of an entity that a page would have to declare.
fn resolved(reference: &BytesRef<'_>) -> Result<String, XmlError> {
    if let Some(one) = reference.resolve_char_ref()? {
        return Ok(one.to_string());
    }
    Ok(resolve_predefined_entity(reference).unwrap_or_default().to_owned())
}

impl Element {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The first element below this one that is called so.
    pub(super) fn first(&self, name: &str) -> Option<&Self> {
        self.children
            .iter()
            .find_map(|child| if child.name == name { Some(child) } else { child.first(name) })
    }

    /// Every element below this one that is called so.
    pub(super) fn all<'a>(&'a self, name: &str) -> Vec<&'a Self> {
        let mut found = Vec::new();
        for child in &self.children {
            if child.name == name {
                found.push(child);
            }
            found.extend(child.all(name));
        }
        found
    }

    /// The text of the first child that is called so.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        let child = self.children.iter().find(|child| child.name == name)?;
        Some(child.text.trim())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn elements_have_their_texts_and_references_are_resolved() {
        let page = r#"<?xml version="1.0"?><a x="1" x="2"><!-- c --><b>1 &lt; 2 &#65;&amp;</b><c/><d><b>deep</b></d></a>"#;
        let whole = parse(page).unwrap();
        let a = whole.first("a").unwrap();
        assert_eq!(a.text_of("b"), Some("1 < 2 A&"));
        assert_eq!((a.text_of("c"), a.text_of("x")), (Some(""), None));
        assert_eq!(whole.all("b").len(), 2);
    }

    #[test]
    fn what_is_not_whole_is_an_error() {
        for page in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "</a>",
            "<a><b></a>",
            "<!DOCTYPE a><a/>",
            "<a>&#xffffffff;</a>",
        ] {
            assert!(parse(page).is_err(), "{page:?}");
        }
        let deep = "<a>".repeat(DEEPEST + 1) + &"</a>".repeat(DEEPEST + 1);
        assert!(matches!(parse(&deep), Err(XmlError::TooDeep)));
        let deep = "<a>".repeat(DEEPEST) + &"</a>".repeat(DEEPEST);
        assert!(parse(&deep).is_ok());
    }

    /// With a parser that compares each attribute with all others this does not end.
    #[test]
    fn a_page_of_attributes_or_namespaces_takes_no_longer_than_another() {
        let mut attributes = String::from("<a");
        let mut namespaces = String::from("<a>");
        for number in 0..100_000 {
            let _ = write!(attributes, " a{number}=\"\"");
            let _ = write!(namespaces, "<b xmlns:x{number}=\"u\"/>");
        }
        attributes.push_str("/>");
        namespaces.push_str("</a>");
        for page in [attributes, namespaces] {
            assert!(parse(&page).is_ok());
        }
    }
}
