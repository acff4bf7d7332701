//! Server-sent events as they come, in pieces that end anywhere. What an event means is not known here.

use std::mem;

/// The most of a line, and of the data of one event.
const MOST: usize = 1 << 20;

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Empty where it says none.
    pub(super) name: String,
    pub(super) data: Data,
}

/// What comes with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Data {
    Text(String),
    TooLong,
}

/// Reads a stream. Comments, which keep it open, are no events.
#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    is_cut: bool,
    is_after_return: bool,
    name: String,
    data: Option<Data>,
}

impl Parser {
    /// The events that are complete with this piece.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for byte in piece {
            let is_after_return = mem::replace(&mut self.is_after_return, *byte == b'\r');
            match byte {
                b'\n' if is_after_return => {}
                b'\n' | b'\r' => events.extend(self.end_of_line()),
                _ if self.line.len() >= MOST => self.is_cut = true,
                _ => self.line.push(*byte),
            }
        }
        events
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let (line, is_cut) = (mem::take(&mut self.line), mem::take(&mut self.is_cut));
        if line.is_empty() {
            return self.end_of_event();
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" if !is_cut => value.clone_into(&mut self.name),
            "data" => self.add(value, is_cut),
            _ => {}
        }
        None
    }

    /// One more line of data.
    fn add(&mut self, value: &str, is_cut: bool) {
        self.data = Some(match self.data.take() {
            _ if is_cut => Data::TooLong,
            None => Data::Text(value.to_owned()),
            Some(Data::Text(before)) if before.len() + value.len() < MOST => {
                Data::Text(before + "\n" + value)
            }
            Some(_) => Data::TooLong,
        });
    }

    /// An event without data is none.
    fn end_of_event(&mut self) -> Option<Event> {
        let (name, data) = (mem::take(&mut self.name), self.data.take());
        data.map(|data| Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}event: init\ndata: {\"a\": \"ä\u{1f980}\"}\n\n:\n\n: still here\r\n\r\n\
                          event: update\r\ndata: 1\r\ndata:2\r\ndata\r\nid: 7\r\nretry: 5\r\n\r\n\
                          event: none\r\r\rdata: : x\r\revent: delete\ndata:  y\n\nevent: cut\ndata: z";

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.to_owned(), data: Data::Text(data.to_owned()) }
    }

    fn expected() -> Vec<Event> {
        vec![
            event("init", "{\"a\": \"ä\u{1f980}\"}"),
            event("update", "1\n2\n"),
            event("", ": x"),
            event("delete", " y"),
        ]
    }

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        let mut parser = Parser::default();
        pieces.into_iter().flat_map(|piece| parser.feed(piece)).collect()
    }

    #[test]
    fn a_stream_is_read_the_same_wherever_its_pieces_end() {
        let bytes = STREAM.as_bytes();
        assert_eq!(read([bytes]), expected());
        assert_eq!(read(bytes.chunks(1)), expected());
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(read(pieces), expected(), "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn any_bytes_are_read_the_same_wherever_their_pieces_end() {
        // All that the parser looks at, and a byte that is no UTF-8.
        let alphabet = [&b"\r"[..], b"\n", b":", b" ", b"data", b"event", b"\xff", b"\xef\xbb\xbf"];
        let mut state = 1_u32;
        for _ in 0..2000 {
            let mut stream = Vec::new();
            for _ in 0..24 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                stream.extend_from_slice(alphabet[(state >> 16) as usize % alphabet.len()]);
            }
            let whole = read([&stream[..]]);
            assert_eq!(read(stream.chunks(1)), whole, "{stream:?}");
            assert_eq!(read(stream.chunks(3)), whole, "{stream:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_kept_and_the_next_event_is_whole() {
        let mut parser = Parser::default();
        assert!(parser.feed(b"event: update\ndata: ").is_empty());
        for _ in 0..5 {
            assert!(parser.feed(&vec![b'a'; MOST]).is_empty());
            assert!(parser.line.capacity() <= 2 * MOST);
        }
        let events = parser.feed(b"\n\nevent: update\ndata: 1\n\n");
        let long = Event { name: "update".to_owned(), data: Data::TooLong };
        assert_eq!(events, [long, event("update", "1")]);
    }

    #[test]
    fn data_of_many_lines_is_bounded_as_well() {
        let mut parser = Parser::default();
        let line = [b"data: ", &vec![b'a'; MOST / 2][..], b"\n"].concat();
        for _ in 0..5 {
            assert!(parser.feed(&line).is_empty());
        }
        let events = parser.feed(b"\n");
        assert_eq!(events, [Event { name: String::new(), data: Data::TooLong }]);
    }
}
