//! Makes new inputs of known ones, the same from the same seed. It knows a little of what the
//! targets read: JSON (duplicate keys, cut texts) and the memory of a guest (words that
//! are pointers and lengths).

/// Texts on which parsers stumble.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"null",
    b"true",
    b"0",
    b"-0",
    b"01",
    b"1e5",
    b"1e999",
    b"-1E+400",
    b"1.",
    b"18446744073709551616",
    b"\\ud800",
    b"\\ud83d\\ude00",
    b"\\u0000",
    b"\"uid\":\"x\"",
    b"\"a\":[1,{\"b\":2}]",
    b"\"object\":null",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\0",
    b"\n",
    b"/",
    b"~0",
    b"~1",
    b"UPDATE",
    b"DELETE",
    b"X1",
    b"/spec/a",
];

/// Words that are pointers, lengths and discriminants on the edge.
const WORDS: &[u32] = &[
    0,
    1,
    2,
    3,
    4,
    7,
    16,
    36,
    255,
    1000,
    2000,
    2020,
    2056,
    4096,
    65_535,
    65_536,
    65_537,
    0xFFFF,
    0x10_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFF0,
    0xFFFF_FFFF,
];

/// Random numbers that can be repeated (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        let drawn = self.next() % (end.max(1) as u64);
        usize::try_from(drawn).unwrap_or_default()
    }

    /// One of them, unless there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

type Mutation = fn(&mut Vec<u8>, &[u8], &mut Rng);

const MUTATIONS: &[Mutation] = &[
    flip_a_bit,
    set_a_byte,
    remove_a_range,
    repeat_a_range,
    insert_a_token,
    replace_by_a_token,
    write_a_word,
    move_a_word,
    repeat_a_member,
    splice,
    cut,
];

/// A new input, at most `longest` bytes: `seed` changed in a few places, some of it perhaps taken
/// from `other`.
#[must_use]
pub fn mutate(seed: &[u8], other: &[u8], longest: usize, rng: &mut Rng) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..=rng.below(4) {
        if let Some(mutation) = rng.pick(MUTATIONS) {
            mutation(&mut input, other, rng);
        }
        input.truncate(longest);
    }
    input
}

/// A place and a length, mostly short.
fn range(bytes: &[u8], rng: &mut Rng) -> std::ops::Range<usize> {
    let start = rng.below(bytes.len());
    let longest = if rng.below(4) == 0 { bytes.len() } else { 16 };
    let end = start + rng.below(longest + 1);
    start..end.min(bytes.len())
}

fn flip_a_bit(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let at = rng.below(input.len());
    let flipped = input.get(at).map(|byte| byte ^ (1 << rng.below(8)));
    input.splice(at..input.len().min(at + 1), flipped);
}

fn set_a_byte(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let at = rng.below(input.len());
    let [value, ..] = rng.next().to_le_bytes();
    input.splice(at..input.len().min(at + 1), [value]);
}

fn remove_a_range(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let range = range(input, rng);
    input.drain(range);
}

fn repeat_a_range(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let range = range(input, rng);
    let copy = input.get(range.clone()).unwrap_or_default().to_vec();
    input.splice(range.start..range.start, copy);
}

fn insert_a_token(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let at = rng.below(input.len() + 1);
    let token = rng.pick(TOKENS).copied().unwrap_or_default();
    input.splice(at..at, token.iter().copied());
}

fn replace_by_a_token(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let range = range(input, rng);
    let token = rng.pick(TOKENS).copied().unwrap_or_default();
    input.splice(range, token.iter().copied());
}

fn write_a_word(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let word = rng.pick(WORDS).copied().unwrap_or_default();
    let at = rng.below(input.len() / 4) * 4;
    let end = (at + 4).min(input.len());
    input.splice(at..end, word.to_le_bytes());
}

/// Lets a pointer or length be another one's.
fn move_a_word(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let (words, _) = input.as_chunks::<4>();
    let word = rng.pick(words).copied().unwrap_or_default();
    let at = rng.below(words.len()) * 4;
    let end = (at + 4).min(input.len());
    input.splice(at..end, word);
}

/// Duplicates a member of a JSON object: from a quote to the next comma or brace.
fn repeat_a_member(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let quotes: Vec<usize> =
        input.iter().enumerate().filter(|(_, byte)| **byte == b'"').map(|(at, _)| at).collect();
    let Some(&start) = rng.pick(&quotes) else { return };
    let rest = input.get(start..).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']');
    let mut member = rest.iter().copied().take_while(|byte| !ends(byte)).collect::<Vec<_>>();
    member.push(b',');
    input.splice(start..start, member);
}

fn splice(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let target = range(input, rng);
    let source = range(other, rng);
    let piece = other.get(source).unwrap_or_default();
    input.splice(target, piece.iter().copied());
}

fn cut(input: &mut Vec<u8>, _: &[u8], rng: &mut Rng) {
    let length = rng.below(input.len() + 1);
    input.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::{Rng, mutate};

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let inputs = |seed| {
            let mut rng = Rng::new(seed);
            let one = || mutate(br#"{"a":[1,2],"b":null}"#, b"other", 64, &mut rng);
            std::iter::repeat_with(one).take(500).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(3).iter().all(|input| input.len() <= 64));
    }

    #[test]
    fn nothing_is_a_seed_too() {
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let _input = mutate(b"", b"", 64, &mut rng);
        }
    }
}
