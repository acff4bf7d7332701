//! All strings of a part of an object, with where they are, in one pass and without the rest.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Strings by JSON Pointer, relative to the part. Not those of its list `containers`: images and
/// commands are programs by intention.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(Vec<(String, String)>);

impl Texts {
    /// Pointer and value of every string, in the order of the document.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, value)| (path.as_str(), value.as_str()))
    }

    /// The strings below `path`, with their pointers relative to it.
    pub(crate) fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.iter().filter_map(move |(at, value)| {
            at.strip_prefix(path).filter(|rest| rest.starts_with('/')).map(|rest| (rest, value))
        })
    }

    /// The string at `path`, if there is one.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.iter().find(|(at, _)| *at == path).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut texts = Self::default();
        let path = &mut String::new();
        Collect { texts: &mut texts.0, path, of_containers: false }.deserialize(deserializer)?;
        Ok(texts)
    }
}

struct Collect<'a> {
    texts: &'a mut Vec<(String, String)>,
    path: &'a mut String,
    /// Whether this is the value of `containers`. A variable of an environment may have that name,
    /// too, and is no list.
    of_containers: bool,
}

impl Collect<'_> {
    fn again(&mut self) -> Collect<'_> {
        Collect { texts: self.texts, path: self.path, of_containers: false }
    }
}

impl<'de> DeserializeSeed<'de> for Collect<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Collect<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.texts.push((self.path.clone(), text.to_owned()));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let length = self.path.len();
        while let Some(key) = map.next_key::<String>()? {
            let of_containers = self.path.is_empty() && key == "containers";
            self.path.push('/');
            self.path.push_str(&key.replace('~', "~0").replace('/', "~1"));
            map.next_value_seed(Collect { of_containers, ..self.again() })?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        if self.of_containers {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let length = self.path.len();
        for index in 0_usize.. {
            self.path.push_str(&format!("/{index}"));
            let more = list.next_element_seed(self.again())?;
            self.path.truncate(length);
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn collects_every_string_but_those_of_containers() {
        let texts: Texts = serde_json::from_value(serde_json::json!({
            "a": "1", "number": 2, "none": null, "list": ["x", {"y/z": "w"}, true],
            "containers": [{"image": "no"}], "env": {"A": "b", "containers": "c"},
        }))
        .unwrap();
        let mut found: Vec<_> = texts.iter().collect();
        found.sort_unstable();
        let expected = [
            ("/a", "1"),
            ("/env/A", "b"),
            ("/env/containers", "c"),
            ("/list/0", "x"),
            ("/list/1/y~1z", "w"),
        ];
        assert_eq!(found, expected);
        assert_eq!(texts.below("/env").collect::<Vec<_>>(), [("/A", "b"), ("/containers", "c")]);
        assert_eq!(texts.get("/a"), Some("1"));
    }
}
