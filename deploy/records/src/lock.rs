//! The checksums of packages in `Cargo.lock`: what a registry gave, and what is compiled.

use std::collections::BTreeMap;

use crate::graph::Id;

/// The SHA-256 of each package that comes from a registry, in hexadecimal.
#[must_use]
pub fn checksums(lock: &str) -> BTreeMap<Id, String> {
    // Cargo writes one form: a head, then `key = "value"` lines, then an empty one.
    let blocks = lock.split("[[package]]").skip(1);
    let all = blocks.filter_map(|block| {
        let value = |key: &str| {
            let mut lines = block.lines();
            let text = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            Some(text.trim_end_matches('"').to_owned())
        };
        let id = Id { name: value("name")?, version: value("version")? };
        Some((id, value("checksum")?))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_registry_have_a_checksum_and_ours_have_none() {
        let lock = "version = 4\n\n[[package]]\nname = \"one\"\nversion = \"1.0.0\"\n\
                    source = \"registry+x\"\nchecksum = \"abc\"\ndependencies = [\n \"two\",\n]\n\n\
                    [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        let id = Id { name: "one".to_owned(), version: "1.0.0".to_owned() };
        assert_eq!(checksums(lock), BTreeMap::from([(id, "abc".to_owned())]));
    }
}
