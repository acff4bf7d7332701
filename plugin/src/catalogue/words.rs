//! The codes without a number: what `validate` says of texts, schemas and sets of documents. What
//! each means is said where it is given; here is why it is wrong, and what to do.

use opensdn_manifests::codes as texts;

use super::{Finder, Meaning, Severity};
use opensdn_validate::report::codes;

use Severity::{Deny, Info, Warn};

/// Code, the worst that it can be, why it is wrong, what to do.
const WORDS: [(&str, Severity, &str, &str); 30] = [
    (
        texts::SYNTAX,
        Deny,
        "Nothing behind the place can be read, neither here nor by kubectl.",
        "correct the text at the line that the message names; it is where reading stopped; the cause may be a little above",
    ),
    (
        texts::ENCODING,
        Deny,
        "YAML and JSON are Unicode; other bytes are read differently by every program.",
        "save the file as UTF-8",
    ),
    (
        texts::LIMIT,
        Deny,
        "The API server takes no object of that size, and aliases that multiply a document are an attack on its readers.",
        "split it, or write out what the aliases are for",
    ),
    (
        texts::DUPLICATE_KEY,
        Deny,
        "One of both values is lost, and which one depends on who reads the file: kubectl takes the last one and says \
         nothing.",
        "remove one of the two keys, or put what is under both into one",
    ),
    (
        texts::KEY,
        Deny,
        "The fields of an object are texts; JSON has no other keys.",
        "write the key as a text, in quotes where needed",
    ),
    (
        texts::ALIAS,
        Deny,
        "An alias (*name) repeats what an anchor (&name) marked before it, in the same document.",
        "correct the name, or write out the value",
    ),
    (
        texts::MERGE,
        Deny,
        "The key << takes in the fields of a mapping. What it does beside fields of the same name differs between programs.",
        "write out the fields",
    ),
    (
        texts::VALUE,
        Deny,
        "An object is sent as JSON, which has neither infinities nor tags of YAML.",
        "write a number or text that JSON has",
    ),
    (
        texts::SEPARATOR,
        Warn,
        "kubectl splits a file at lines that begin with ---, before it reads YAML: it may see other documents than a reader of YAML.",
        "write --- alone in its line, and nothing that looks like it within a text",
    ),
    (
        texts::NO_OBJECT,
        Deny,
        "What is applied is an object, a mapping with apiVersion and kind.",
        "remove the document, or give it apiVersion, kind and metadata",
    ),
    (
        texts::UNKNOWN_KIND,
        Deny,
        "The API server has no such resource (no matches for kind), or, with --strict, neither a schema nor a policy knows it, so that nothing was checked.",
        "look at the spelling of apiVersion and kind; leave --strict out if it is another product's",
    ),
    (
        texts::UNKNOWN_FIELD,
        Deny,
        "kubectl refuses it; without its check the API server drops the field, and what it should do never happens.",
        "correct the name or the indentation; the hint names what was probably meant",
    ),
    (texts::REQUIRED, Deny, "The API server refuses the object without it.", "add the field"),
    (
        texts::TYPE,
        Deny,
        "The API server refuses the object. Often quotes are missing or too many: \"1\" is a text, 1 a number.",
        "give a value of the type that the message names",
    ),
    (
        texts::ENUM,
        Deny,
        "The API server takes only the values of the list, letter by letter.",
        "use one of those that the message lists",
    ),
    (
        texts::RANGE,
        Deny,
        "The API server refuses the object; the value would not work.",
        "use a number within the bounds that the message names",
    ),
    (
        texts::LENGTH,
        Deny,
        "The API server refuses the object.",
        "shorten or lengthen it to the bounds that the message names",
    ),
    (
        texts::PATTERN,
        Deny,
        "The API server refuses the object: a value of this form would not be understood.",
        "write it as the pattern demands; kubectl explain shows what the field is for",
    ),
    (
        texts::FORMAT,
        Deny,
        "The API server refuses the object: the text is not what the field is read as, such as an address or a time.",
        "write it in the format that the message names",
    ),
    (
        texts::DUPLICATE_ENTRY,
        Deny,
        "The entries of this list are identified by these keys. Two of one key cannot be merged.",
        "remove one of the entries, or change its key",
    ),
    (
        texts::ALTERNATIVES,
        Deny,
        "The API server refuses the object: the value is none, or too many, of the forms that the schema allows.",
        "look at what the schema allows: kubectl explain",
    ),
    (
        texts::METADATA,
        Deny,
        "Names, labels and annotations have rules that are the same for all kinds.",
        "write it as the message says",
    ),
    (
        texts::DEPRECATED,
        Warn,
        "It works now, and a later version will not have it.",
        "use what the message names in its place",
    ),
    (
        texts::RULE,
        Deny,
        "The schema has a rule (CEL) that the values break together; the API server checks it too.",
        "correct the values that the message names",
    ),
    (
        texts::NOT_CHECKED,
        Info,
        "Something about the object could not be checked here; that is no sign that it is right.",
        "correct the other findings first; the API server checks it when the object is applied",
    ),
    (
        codes::DEFINED_TWICE,
        Deny,
        "kubectl applies both, and the last one wins: what the first one says is lost without a word.",
        "remove one of them, or give it another name",
    ),
    (
        codes::UNREADABLE,
        Deny,
        "What cannot be read is not checked, so that the answer as a whole would be worth nothing.",
        "give yourself the right to read it, or leave it out",
    ),
    (
        codes::INCONCLUSIVE,
        Deny,
        "An answer that could not be computed is never a pass: the webhook refuses the object, or lets it pass with a warning, by the policy's failureMode.",
        "look at the reason in the message; a lookup that needs the cluster is answered with --live",
    ),
    (
        codes::WITHOUT_REASON,
        Warn,
        "A later reader of the file cannot judge whether the suppression is still right.",
        "write why: # opensdn-ignore: CODE reason",
    ),
    (codes::UNUSED, Info, "It would hide the finding, should it ever come back.", "remove it"),
];

/// `(code, meaning)` of each.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    WORDS.into_iter().map(|(code, severity, why, remedy)| {
        let meaning = Meaning {
            found_by: Finder::Validate,
            policy: None,
            severity,
            title: title(code),
            why: why.to_owned(),
            remedy: remedy.to_owned(),
            rules: Vec::new(),
            sources: Vec::new(),
        };
        (code, meaning)
    })
}

/// What the code means, as it is written where it is given: as a part of a sentence.
fn title(code: &str) -> String {
    let text = codes::meaning(code).unwrap_or_default().trim_end_matches('.');
    let mut letters = text.chars();
    // `YAML`, `API` and the like stay as they are.
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}
