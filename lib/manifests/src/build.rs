//! From the parser's events to a value and its places: anchors and aliases, merge keys, duplicate
//! keys, and the limits that keep a small file from becoming a large object. Works on a stack of
//! its own, so that no nesting exhausts the thread's.

use std::collections::{BTreeSet, HashMap};

use granit_parser::{Event, ScalarStyle, ScanError, StructureStyle, Tag};
use serde_json::{Map, Value};

use crate::comment::Comment;
use crate::problem::{Problem, codes};
use crate::read::{MAX_DEPTH, MAX_VALUES};
use crate::scalar;
use crate::source::Span;
use crate::source_map::{Fields, SourceMap, join};
use crate::syntax;
use fields::{insert, merge};

mod fields;

/// What all anchors and aliases of a document may add up to, in [`Node::weight`]: a few copies of
/// the largest document, and far from what nested aliases can reach.
const MAX_EXPANSION: usize = 32 << 20;

/// The memory of a value besides its text.
const VALUE_WEIGHT: usize = 32;

type Step = Result<(), Box<Problem>>;

/// A value that is complete.
#[derive(Clone)]
struct Node {
    value: Value,
    places: SourceMap,
    /// About how many bytes a copy takes.
    weight: usize,
    /// How many levels of lists and mappings it has.
    height: usize,
    aliased: bool,
}

/// A list or mapping that is not complete.
struct Frame {
    start: usize,
    end: usize,
    anchor: usize,
    weight: usize,
    height: usize,
    /// Written with brackets.
    flow: bool,
    content: Content,
}

enum Content {
    List {
        items: Vec<Value>,
        places: Vec<SourceMap>,
    },
    Mapping {
        fields: Map<String, Value>,
        places: Fields,
        merged: BTreeSet<String>,
        key: Option<Key>,
    },
}

/// A key that waits for its value.
enum Key {
    Named(String, Span),
    Merge(Span),
    /// No string; said already.
    Unusable(Span),
}

/// Takes the events of one document.
pub(crate) struct Builder<'a> {
    text: &'a str,
    offset: usize,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    values: usize,
    expansion: usize,
    pub(crate) root: Option<(Value, SourceMap)>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) comments: Vec<Comment>,
}

impl<'a> Builder<'a> {
    /// For a document with the given offset in its source.
    pub(crate) fn new(offset: usize, piece: &'a str) -> Self {
        // The parser is given the text without a byte order mark.
        let text = piece.strip_prefix('\u{feff}').unwrap_or(piece);
        Self {
            text,
            offset: offset + piece.len() - text.len(),
            stack: Vec::new(),
            anchors: HashMap::new(),
            values: 0,
            expansion: 0,
            root: None,
            problems: Vec::new(),
            comments: Vec::new(),
        }
    }

    /// Takes one event. An error ends the document.
    pub(crate) fn take(&mut self, event: Event<'_>, span: &granit_parser::Span) -> Step {
        let span = self.span(span);
        match event {
            Event::Comment(text, _) => self.comment(&text, span),
            Event::Scalar(text, style, anchor, tag) => {
                return self.scalar(&text, style, anchor, tag.as_deref(), span);
            }
            Event::SequenceStart(style, anchor, _) => {
                let content = Content::List { items: Vec::new(), places: Vec::new() };
                return self.open(span, style, anchor, content);
            }
            Event::MappingStart(style, anchor, _) => {
                let (fields, places) = (Map::new(), Fields::new());
                let merged = BTreeSet::new();
                let content = Content::Mapping { fields, places, merged, key: None };
                return self.open(span, style, anchor, content);
            }
            Event::SequenceEnd | Event::MappingEnd => return self.close(span),
            Event::Alias(id) => return self.alias(id, span),
            Event::UnresolvedAlias(name) => {
                let message = format!("the alias `*{name}` has no anchor `&{name}` before it");
                self.report(Problem::error(codes::ALIAS, message).at(span).hint(
                    "define the anchor in the same document, or quote a text that begins with `*`",
                ));
                return self.deliver(leaf(Value::Null, span), 0);
            }
            _ => {}
        }
        Ok(())
    }

    /// Where something is in the source.
    pub(crate) fn span(&self, span: &granit_parser::Span) -> Span {
        let range = span.byte_range().unwrap_or(self.text.len()..self.text.len());
        Span::new(range.start, range.end).moved(self.offset)
    }

    /// The problem of an error of syntax, at its place.
    pub(crate) fn syntax_error(&self, error: &ScanError) -> Box<Problem> {
        let end = self.text.len();
        let start = error.marker().byte_offset().unwrap_or(end).min(end);
        let start = self.text.floor_char_boundary(start);
        let width = self.text.get(start..).and_then(|rest| rest.chars().next());
        let width = width.filter(|character| !character.is_control()).map_or(0, char::len_utf8);
        Box::new(syntax::problem(error).at(Span::new(start, start + width).moved(self.offset)))
    }

    fn comment(&mut self, text: &str, span: Span) {
        let start = span.start.saturating_sub(self.offset);
        let before = self.text.get(..start).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let trailing = !line.trim().is_empty();
        self.comments.push(Comment { span, text: text.trim().to_owned(), trailing });
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Step {
        self.refuse_tab(span)?;
        let span = self.visible(span);
        let plain = matches!(style, ScalarStyle::Plain);
        let core = tag.and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
        let core = core.as_deref();
        if text == "<<" && (plain && tag.is_none() || core == Some("merge")) && self.wants_key() {
            self.set_key(Key::Merge(span));
            return Ok(());
        }
        let resolved = match (core, tag) {
            (Some(core), _) => scalar::tagged(core, text),
            (None, None) if plain => Some(scalar::plain(text)),
            (None, _) => None,
        };
        let value = match resolved.unwrap_or_else(|| Ok(Value::from(text))) {
            Ok(value) => value,
            Err(message) => {
                let pointer = self.pointer();
                self.report(
                    Problem::error(codes::VALUE, message)
                        .at(span)
                        .pointer(pointer)
                        .hint("quote it if a text is meant"),
                );
                Value::Null
            }
        };
        self.deliver(leaf(value, span), anchor)
    }

    /// A value that is not written is at its key; the blank end of a block is left out.
    fn visible(&self, span: Span) -> Span {
        let range = span.start.saturating_sub(self.offset)..span.end.saturating_sub(self.offset);
        let written = self.text.get(range).unwrap_or_default();
        match self.stack.last().map(|frame| &frame.content) {
            Some(Content::Mapping { key: Some(key), .. }) if written.is_empty() => key.span(),
            _ => Span::new(span.start, span.start + written.trim_end().len()),
        }
    }

    fn open(&mut self, span: Span, style: StructureStyle, anchor: usize, content: Content) -> Step {
        self.refuse_tab(span)?;
        if self.stack.len() >= MAX_DEPTH {
            return Err(Box::new(syntax::too_deep().at(span)));
        }
        let flow = matches!(style, StructureStyle::Flow);
        let dash = !flow && matches!(content, Content::List { .. });
        let start = if dash { self.dash_before(span.start) } else { span.start };
        let (weight, height) = (VALUE_WEIGHT, 1);
        self.stack.push(Frame { start, end: span.end, anchor, weight, height, flow, content });
        Ok(())
    }

    /// Where the first `-` of a list is: the parser may place the list behind it.
    fn dash_before(&self, start: usize) -> usize {
        let before = self.text.get(..start.saturating_sub(self.offset)).unwrap_or_default();
        let before = before.trim_end_matches([' ', '\t']);
        before.strip_suffix('-').map_or(start, |before| before.len() + self.offset)
    }

    /// kubectl's parser takes no tab before the first value of a line, or behind a `-`, but within
    /// brackets.
    fn refuse_tab(&self, span: Span) -> Step {
        if self.stack.last().is_some_and(|frame| frame.flow) {
            return Ok(());
        }
        let start = span.start.saturating_sub(self.offset);
        let before = self.text.get(..start).unwrap_or_default();
        let outside = before.trim_end_matches([' ', '\t']);
        let begins = outside.is_empty() || outside.ends_with(['\n', '-', '?']);
        match before.get(outside.len()..).and_then(|blanks| blanks.find('\t')) {
            Some(at) if begins => {
                let at = outside.len() + at + self.offset;
                Err(Box::new(syntax::tab().at(Span::new(at, at + 1))))
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self, span: Span) -> Step {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        // Only brackets have an end of their own; a block ends with its last value.
        let end = if span.start < span.end { span.end } else { frame.end };
        let span = Span::new(frame.start, end.max(frame.start));
        let (value, places) = match frame.content {
            Content::List { items, places } => {
                (Value::Array(items), SourceMap::of_list(span, places))
            }
            Content::Mapping { fields, places, .. } => {
                (Value::Object(fields), SourceMap::of_mapping(span, places))
            }
        };
        let (weight, height) = (frame.weight, frame.height);
        self.deliver(Node { value, places, weight, height, aliased: false }, frame.anchor)
    }

    fn alias(&mut self, id: usize, span: Span) -> Step {
        let Some(node) = self.anchors.get(&id) else {
            let message = "the alias is within its own anchor, so the value would be endless";
            return Err(Box::new(
                Problem::error(codes::ALIAS, message).at(span).hint("write the value out"),
            ));
        };
        let (weight, height) = (node.weight, node.height);
        if self.stack.len() + height > MAX_DEPTH {
            return Err(Box::new(syntax::too_deep().at(span)));
        }
        self.grow(weight, span)?;
        let Some(node) = self.anchors.get(&id) else { return Ok(()) };
        let copy = Node { places: node.places.seen_at(span), aliased: true, ..node.clone() };
        self.deliver(copy, 0)
    }

    /// Counts a copy that an anchor or alias makes.
    fn grow(&mut self, weight: usize, span: Span) -> Step {
        self.expansion = self.expansion.saturating_add(weight);
        if self.expansion <= MAX_EXPANSION {
            return Ok(());
        }
        let mebibytes = MAX_EXPANSION >> 20;
        let message = format!("with its aliases written out the document exceeds {mebibytes} MiB");
        Err(Box::new(
            Problem::error(codes::LIMIT, message)
                .at(span)
                .hint("nest aliases less: each one copies what its anchor holds"),
        ))
    }

    /// Puts a complete value where it belongs.
    fn deliver(&mut self, node: Node, anchor: usize) -> Step {
        self.values += 1;
        if self.values > MAX_VALUES {
            let message = format!("the document has more than {MAX_VALUES} values");
            return Err(Box::new(
                Problem::error(codes::LIMIT, message)
                    .at(node.places.span)
                    .hint("split it into several documents"),
            ));
        }
        if anchor != 0 {
            self.grow(node.weight, node.places.span)?;
            self.anchors.insert(anchor, node.clone());
        }
        if self.wants_key() {
            let key = self.key_of(&node);
            self.set_key(key);
            return Ok(());
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some((node.value, node.places));
            return Ok(());
        };
        frame.weight = frame.weight.saturating_add(node.weight);
        frame.height = frame.height.max(node.height + 1);
        // The value of a merge is elsewhere, as does what an alias copies.
        frame.end = frame.end.max(node.places.span.end);
        let problems = match &mut frame.content {
            Content::List { items, places } => {
                items.push(node.value);
                places.push(node.places);
                Vec::new()
            }
            Content::Mapping { fields, places, merged, key } => match key.take() {
                Some(Key::Named(name, span)) => {
                    insert(name, span, node, fields, places, merged).into_iter().collect()
                }
                Some(Key::Merge(span)) => merge(node, span, fields, places, merged),
                Some(Key::Unusable(_)) | None => Vec::new(),
            },
        };
        for problem in problems {
            let pointer = format!("{}{}", self.pointer(), problem.pointer.as_deref().unwrap_or(""));
            self.report(problem.pointer(pointer));
        }
        Ok(())
    }

    fn wants_key(&self) -> bool {
        let top = self.stack.last().map(|frame| &frame.content);
        matches!(top, Some(Content::Mapping { key: None, .. }))
    }

    fn set_key(&mut self, new: Key) {
        if let Some(frame) = self.stack.last_mut() {
            frame.end = frame.end.max(new.span().end);
            if let Content::Mapping { key, .. } = &mut frame.content {
                *key = Some(new);
            }
        }
    }

    fn key_of(&mut self, node: &Node) -> Key {
        let span = node.places.span;
        match scalar::key(&node.value) {
            Some(name) => Key::Named(name, span),
            None => {
                let what = syntax::kind_of(&node.value);
                let message = format!("{what} cannot be a key in JSON");
                let pointer = self.pointer();
                self.report(
                    Problem::error(codes::KEY, message)
                        .at(span)
                        .pointer(pointer)
                        .hint("quote it if a text is meant, as templates in braces often are"),
                );
                Key::Unusable(span)
            }
        }
    }

    /// The pointer of the value that comes next.
    fn pointer(&self) -> String {
        self.stack.iter().fold(String::new(), |pointer, frame| match &frame.content {
            Content::List { items, .. } => format!("{pointer}/{}", items.len()),
            Content::Mapping { key: Some(Key::Named(name, _)), .. } => join(&pointer, name),
            Content::Mapping { .. } => pointer,
        })
    }

    /// Keeps a problem; a document that is wrong all over is not reported in full.
    fn report(&mut self, problem: Problem) {
        const MOST: usize = 1000;
        if self.problems.len() < MOST {
            self.problems.push(problem);
        }
    }
}

impl Key {
    const fn span(&self) -> Span {
        match self {
            Self::Named(_, span) | Self::Merge(span) | Self::Unusable(span) => *span,
        }
    }
}

fn leaf(value: Value, span: Span) -> Node {
    let weight = VALUE_WEIGHT + value.as_str().map_or(0, str::len);
    Node { value, places: SourceMap::of_scalar(span), weight, height: 0, aliased: false }
}
