//! What a module says of itself, and how much of it there may be. It is a stranger's text that this
//! program works on natively, outside the limits of an evaluation, so its length and its depth are
//! bounded before anything is made of it. What it means for a cluster is checked by those who put
//! the policy in force.

mod settings;

use std::collections::HashSet;

use crate::{
    contract::{Index, Interest, Metadata, wire},
    text::{beginning, is_unseen},
};

pub(crate) use settings::SettingsSchema;
pub use settings::{
    MAX_PATTERN_BYTES, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_VALUES, MAX_SETTINGS_STEPS,
    SchemaError,
};

/// Bytes of a JSON Pointer.
pub const MAX_POINTER_BYTES: usize = 256;
/// Segments of a JSON Pointer.
pub const MAX_POINTER_SEGMENTS: usize = 32;
/// Pointers of all interests and indexes together.
pub const MAX_READS: usize = 256;
/// Indexes.
pub const MAX_INDEXES: usize = 64;
/// Interests.
pub const MAX_INTERESTS: usize = 64;
/// Messages.
pub const MAX_MESSAGES: usize = 256;
/// Bytes of a name: of the policy, its version, an index, a group, a kind, a code.
pub const MAX_NAME_BYTES: usize = 253;

/// There are no more operations than these.
const OPERATIONS: usize = 4;

/// What a module says of itself cannot be.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DescriptionError {
    #[error("its name {0:?} is not lower case words with `-`")]
    Name(String),
    #[error("it is about no kind of object")]
    NoInterest,
    #[error("it has {count} {what}; a module may have {most}")]
    TooMany { what: &'static str, count: usize, most: usize },
    #[error("{what} may have {most} bytes; this one has {length}: \"{text}…\"")]
    TooLong { what: &'static str, text: String, length: usize, most: usize },
    #[error("{what} has a character that is not shown: {text:?}")]
    Unseen { what: &'static str, text: String },
    #[error("{0:?} is not a JSON Pointer")]
    NotAPointer(String),
    #[error("the JSON Pointer {0:?} has more than {MAX_POINTER_SEGMENTS} segments")]
    TooDeep(String),
    #[error("it reads nothing of {0}")]
    NoReads(String),
    #[error("the code {0:?} stands for two messages")]
    CodeTwice(String),
    #[error("its settings schema cannot be used")]
    Schema(#[from] SchemaError),
}

/// Reads what `describe()` returned, as far as it is within bounds.
pub(crate) fn read(metadata: wire::Metadata) -> Result<Metadata, DescriptionError> {
    settings::check_size(&metadata.settings_schema)?;
    let metadata = Metadata::try_from(metadata).map_err(SchemaError::NotJson)?;
    check(&metadata)?;
    Ok(metadata)
}

fn check(metadata: &Metadata) -> Result<(), DescriptionError> {
    let Metadata { name, version, summary, interests, indexes, messages, .. } = metadata;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    short("a name", name)?;
    if name.is_empty() || !name.bytes().all(plain) {
        return Err(DescriptionError::Name(name.clone()));
    }
    short("a version", version)?;
    one_line("a summary", summary)?;
    if interests.is_empty() {
        return Err(DescriptionError::NoInterest);
    }
    few("interests", interests.len(), MAX_INTERESTS)?;
    few("indexes", indexes.len(), MAX_INDEXES)?;
    few("messages", messages.len(), MAX_MESSAGES)?;
    let reads = interests.iter().map(|interest| interest.reads.len());
    let looked_up = indexes.iter().map(|index| index.reads.len());
    few("pointers of what it reads", reads.chain(looked_up).sum(), MAX_READS)?;
    interests.iter().try_for_each(check_interest)?;
    indexes.iter().try_for_each(check_index)?;
    let mut codes = HashSet::new();
    for message in messages {
        short("a code", &message.code)?;
        one_line("a title", &message.title)?;
        if !codes.insert(&message.code) {
            return Err(DescriptionError::CodeTwice(message.code.clone()));
        }
    }
    Ok(())
}

fn check_interest(interest: &Interest) -> Result<(), DescriptionError> {
    short("a group", &interest.group)?;
    short("a kind", &interest.kind)?;
    few("operations in one interest", interest.operations.len(), OPERATIONS)?;
    if interest.reads.is_empty() {
        return Err(DescriptionError::NoReads(interest.kind.clone()));
    }
    interest.reads.iter().try_for_each(|pointer| check_pointer(pointer))
}

fn check_index(index: &Index) -> Result<(), DescriptionError> {
    short("a name of an index", &index.name)?;
    short("a group", &index.group)?;
    short("a kind", &index.kind)?;
    index.reads.iter().chain([&index.key]).try_for_each(|pointer| check_pointer(pointer))
}

fn check_pointer(pointer: &str) -> Result<(), DescriptionError> {
    bounded("a JSON Pointer", pointer, MAX_POINTER_BYTES)?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(DescriptionError::NotAPointer(pointer.to_owned()));
    }
    if pointer.matches('/').count() > MAX_POINTER_SEGMENTS {
        return Err(DescriptionError::TooDeep(pointer.to_owned()));
    }
    Ok(())
}

fn few(what: &'static str, count: usize, most: usize) -> Result<(), DescriptionError> {
    if count > most { Err(DescriptionError::TooMany { what, count, most }) } else { Ok(()) }
}

fn short(what: &'static str, text: &str) -> Result<(), DescriptionError> {
    bounded(what, text, MAX_NAME_BYTES)?;
    one_line(what, text)
}

/// Behind a line break it would look as if the program said what the module says.
fn one_line(what: &'static str, text: &str) -> Result<(), DescriptionError> {
    if text.contains(is_unseen) {
        return Err(DescriptionError::Unseen { what, text: beginning(text, 60).to_owned() });
    }
    Ok(())
}

fn bounded(what: &'static str, text: &str, most: usize) -> Result<(), DescriptionError> {
    if text.len() <= most {
        return Ok(());
    }
    let (length, text) = (text.len(), beginning(text, 60).to_owned());
    Err(DescriptionError::TooLong { what, text, length, most })
}

#[cfg(test)]
mod tests;
