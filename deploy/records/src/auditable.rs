//! The list of packages that `cargo auditable` puts into a program and that scanners read from it: JSON,
//! compressed by zlib, in the section `.dep-v0`.

use serde_json::{Value, json};

use crate::graph::{Graph, Id, Package};

/// The section's name.
pub const SECTION: &str = ".dep-v0";
/// The most that a block holds of what is not compressed.
const BLOCK: usize = 0xffff;

/// The section's content.
#[must_use]
pub fn section(graph: &Graph) -> Vec<u8> {
    zlib(packages(graph).to_string().as_bytes())
}

/// Packages in the order of their names, each naming what it uses by its place in the list.
fn packages(graph: &Graph) -> Value {
    let place = |wanted: &Id| graph.packages.keys().position(|id| id == wanted);
    let entry = |(id, package): (&Id, &Package)| {
        let uses: Vec<usize> = package.uses.iter().filter_map(place).collect();
        let source = if package.folder.is_some() { "local" } else { "crates.io" };
        let mut entry = json!({"name": id.name, "version": id.version, "source": source});
        if let Some(fields) = entry.as_object_mut() {
            if !uses.is_empty() {
                fields.insert("dependencies".to_owned(), uses.into());
            }
            if *id == graph.root {
                fields.insert("root".to_owned(), true.into());
            }
        }
        entry
    };
    json!({"packages": graph.packages.iter().map(entry).collect::<Vec<_>>()})
}

/// As zlib allows it: stored as it is. Thirty kilobytes are not worth a compressor, and the image's layer
/// is compressed.
fn zlib(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x78, 0x01];
    let blocks = content.len().div_ceil(BLOCK);
    for (number, block) in (1..).zip(content.chunks(BLOCK)) {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        bytes.push(u8::from(number == blocks));
        bytes.extend(length.to_le_bytes());
        bytes.extend((!length).to_le_bytes());
        bytes.extend(block);
    }
    bytes.extend(adler32(content).to_be_bytes());
    bytes
}

fn adler32(content: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = content.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    (high << 16) | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_zlib_begins_and_ends_as_it_must() {
        // As zlib itself writes it at level 0.
        let hello =
            [0x78, 0x01, 0x01, 5, 0, 0xfa, 0xff, b'h', b'e', b'l', b'l', b'o', 6, 0x2c, 2, 0x15];
        assert_eq!(zlib(b"hello"), hello);
        let long = zlib(&vec![b'x'; BLOCK + 1]);
        assert_eq!(long.get(2..7), Some(&[0, 0xff, 0xff, 0, 0][..]));
        assert_eq!(long.get(7 + BLOCK..13 + BLOCK), Some(&[1, 1, 0, 0xfe, 0xff, b'x'][..]));
    }
}
