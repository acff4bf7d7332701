//! Lookups that were recorded, and are answered from the record later: an evaluation is repeated
//! without the cluster. Deliberately not here: where a record is kept.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use super::{ALL, Answer, FoundObject, Index, Lookup, LookupError};

/// What was asked, and what the answers were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Every question once, in the order in which they were first asked.
    pub calls: Vec<Call>,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The index that was asked.
    pub index: Index,
    /// What it was asked.
    pub question: Question,
    /// What it answered.
    pub answer: Answered,
}

/// A query of an index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// The object of that name.
    Get {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// All objects that have the key.
    Find {
        /// The key.
        key: String,
        /// How many of them, if not all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<usize>,
    },
}

/// What an index answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answered {
    /// The objects; none is an answer too.
    Found(Vec<FoundObject>),
    /// Why it could not be answered.
    Error(String),
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { namespace, name } if namespace.is_empty() => {
                write!(formatter, "get {name:?}")
            }
            Self::Get { namespace, name } => write!(formatter, "get {name:?} in {namespace:?}"),
            Self::Find { key, most: None } => write!(formatter, "find {key:?}"),
            Self::Find { key, most: Some(most) } => {
                write!(formatter, "find {key:?}, the first {most}")
            }
        }
    }
}

/// Answers as another lookup does, and records the answers.
pub struct Recording {
    inner: Arc<dyn Lookup>,
    record: Mutex<Record>,
}

impl Recording {
    /// Writes down what `inner` answers.
    #[must_use]
    pub fn new(inner: Arc<dyn Lookup>) -> Self {
        Self { inner, record: Mutex::default() }
    }

    /// What was asked so far.
    #[must_use]
    pub fn record(&self) -> Record {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, index: &Index, question: Question, answer: Answered) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |call: &Call| call.index == *index && call.question == question;
        if !record.calls.iter().any(known) {
            record.calls.push(Call { index: index.clone(), question, answer });
        }
    }
}

impl Lookup for Recording {
    fn get<'a>(
        &'a self,
        index: &'a Index,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Option<FoundObject>> {
        Box::pin(async move {
            let answer = self.inner.get(index, namespace, name).await;
            let kept = match &answer {
                Ok(found) => Answered::Found(found.iter().cloned().collect()),
                Err(error) => Answered::Error(error.0.clone()),
            };
            self.keep(index, get(namespace, name), kept);
            answer
        })
    }

    fn find<'a>(
        &'a self,
        index: &'a Index,
        key: &'a str,
        most: usize,
    ) -> Answer<'a, Vec<FoundObject>> {
        Box::pin(async move {
            let answer = self.inner.find(index, key, most).await;
            let kept = match &answer {
                Ok(found) => Answered::Found(found.clone()),
                Err(error) => Answered::Error(error.0.clone()),
            };
            self.keep(index, find(key, most), kept);
            answer
        })
    }
}

/// Answers from a record, and from nothing else.
#[derive(Debug)]
pub struct Replay {
    answers: HashMap<(Index, Question), Answered>,
    missing: Mutex<Vec<String>>,
}

impl Replay {
    /// Answers as the record says.
    #[must_use]
    pub fn new(record: Record) -> Self {
        let calls = record.calls.into_iter();
        let answers = calls.map(|call| ((call.index, call.question), call.answer)).collect();
        Self { answers, missing: Mutex::default() }
    }

    /// What was asked that is not in the record.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, index: &Index, question: Question) -> Result<Vec<FoundObject>, LookupError> {
        let key = (index.clone(), question);
        match self.answers.get(&key) {
            Some(Answered::Found(found)) => Ok(found.clone()),
            Some(Answered::Error(text)) => Err(LookupError(text.clone())),
            None => {
                let text = format!("{} ({} {})", index.name, index.kind, key.1);
                self.missing.lock().unwrap_or_else(PoisonError::into_inner).push(text.clone());
                Err(LookupError(format!("the record does not have the lookup {text}")))
            }
        }
    }
}

impl Lookup for Replay {
    fn get<'a>(
        &'a self,
        index: &'a Index,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Option<FoundObject>> {
        let answer = self.answer(index, get(namespace, name));
        Box::pin(async move { answer.map(|found| found.into_iter().next()) })
    }

    fn find<'a>(
        &'a self,
        index: &'a Index,
        key: &'a str,
        most: usize,
    ) -> Answer<'a, Vec<FoundObject>> {
        let answer = self.answer(index, find(key, most));
        Box::pin(async move { answer })
    }
}

fn get(namespace: &str, name: &str) -> Question {
    Question::Get { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn find(key: &str, most: usize) -> Question {
    Question::Find { key: key.to_owned(), most: Some(most).filter(|most| *most != ALL) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{Index, Lookup, Record, Recording, Replay};
    use crate::lookup::{ALL, Documents, NoLookup};

    fn index(name: &str) -> Index {
        Index {
            name: name.into(),
            group: String::new(),
            kind: "Node".into(),
            key: "/spec/rack".into(),
            reads: vec!["/spec".into(), "/status".into()],
        }
    }

    fn documents() -> Arc<Documents> {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "spec": {"rack": "a"}});
        Arc::new(Documents::new(vec![node]))
    }

    #[tokio::test]
    async fn a_replay_answers_as_the_recorded_cluster_did() {
        let recording = Recording::new(documents());
        let index = index("racks");
        let found = recording.find(&index, "a", ALL).await;
        let nothing = recording.find(&index, "b", ALL).await;
        let one = recording.get(&index, "", "n1").await;
        let none = recording.get(&index, "", "n2").await;
        let first = recording.find(&index, "a", 0).await;
        assert_eq!(found.as_ref().unwrap().len(), 1);

        let text = serde_json::to_string(&recording.record()).unwrap();
        let replay = Replay::new(serde_json::from_str(&text).unwrap());
        assert_eq!(replay.find(&index, "a", ALL).await, found);
        assert_eq!(replay.find(&index, "b", ALL).await, nothing);
        assert_eq!(replay.get(&index, "", "n1").await, one);
        assert_eq!(replay.get(&index, "", "n2").await, none);
        assert_eq!(first, Ok(Vec::new()));
        assert_eq!(replay.find(&index, "a", 0).await, first);
        assert!(replay.missing().is_empty());
    }

    #[tokio::test]
    async fn a_question_that_was_not_recorded_is_an_error_and_is_named() {
        let recording = Recording::new(documents());
        recording.find(&index("racks"), "a", ALL).await.unwrap();
        let replay = Replay::new(recording.record());
        assert!(replay.find(&index("racks"), "b", ALL).await.is_err());
        assert!(replay.find(&index("other"), "a", ALL).await.is_err());
        assert_eq!(replay.missing(), [r#"racks (Node find "b")"#, r#"other (Node find "a")"#]);
    }

    #[tokio::test]
    async fn an_error_is_recorded_as_an_error_and_a_question_once() {
        let recording = Recording::new(Arc::new(NoLookup));
        for _ in 0..2 {
            recording.get(&index("racks"), "n", "x").await.unwrap_err();
        }
        let record: Record = recording.record();
        assert_eq!(record.calls.len(), 1);
        assert!(Replay::new(record).get(&index("racks"), "n", "x").await.is_err());
    }
}
