//! What `nodetool status` says, and what the answers of all come to (pure).

use std::collections::BTreeMap;

use crate::ensemble::{Answer, Answers, Member};

/// How a node is part of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Normal,
    Joining,
    Leaving,
    Moving,
}

/// A node, as another sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) is_up: bool,
    pub(super) state: State,
    pub(super) host: String,
    pub(super) host_id: String,
    /// The first digits of its id, which is random, and which one that takes the place of another takes over.
    pub(super) id: u32,
}

impl Row {
    pub(super) fn words(&self) -> &'static str {
        match (self.is_up, self.state) {
            (false, _) => "down",
            (_, State::Joining) => "joining",
            (_, State::Leaving) => "leaving",
            (_, State::Moving) => "moving",
            (_, State::Normal) => "up",
        }
    }

    fn is_member(&self) -> bool {
        self.state != State::Joining
    }
}

/// What it says.
///
/// # Errors
/// It names no node.
pub(super) fn parse(text: &str) -> Result<Vec<Row>, String> {
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    if rows.is_empty() {
        let said: String = text.trim().chars().take(200).collect();
        return Err(format!("nodetool status names no node: {said}"));
    }
    Ok(rows)
}

/// `UN  192.0.2.1  94.6 KiB  256  66.7%  11111111-2222-3333-4444-555555555555  rack1`. The load is `?` at first.
fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let mut letters = words.next()?.chars();
    let (up, state, None) = (letters.next()?, letters.next()?, letters.next()) else {
        return None;
    };
    let is_up = match up {
        'U' => true,
        'D' | '?' => false,
        _ => return None,
    };
    let state = match state {
        'N' => State::Normal,
        'J' => State::Joining,
        'L' => State::Leaving,
        'M' => State::Moving,
        _ => return None,
    };
    let host = words.next()?.to_owned();
    let host_id = words.find(|word| is_uuid(word))?.to_owned();
    let id = u32::from_str_radix(host_id.get(..8)?, 16).ok()?;
    Some(Row { is_up, state, host, host_id, id })
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Who serves, and who is a member. One serves that answers, is a member, and is up to most of the others.
pub(super) fn answers(all: &BTreeMap<String, Result<Vec<Row>, String>>) -> Answers {
    let good = || all.iter().filter_map(|(address, said)| Some((address, said.as_ref().ok()?)));
    let judge = |address: &String, rows: &Vec<Row>| {
        let own = rows.iter().find(|row| row.host == *address);
        match own {
            Some(own) if own.is_member() => {}
            Some(own) => return Err(format!("is {}", own.words())),
            None => return Err("is not part of the ring".to_owned()),
        }
        let others = good().filter(|(other, _)| *other != address);
        let seen: Vec<bool> = others
            .filter_map(|(_, rows)| rows.iter().find(|row| row.host == *address))
            .map(|row| row.is_up)
            .collect();
        let down = seen.iter().filter(|is_up| !**is_up).count();
        if down * 2 > seen.len() {
            return Err(format!("is down to {down} of the others"));
        }
        let mut members: Vec<_> = rows
            .iter()
            .filter(|row| row.is_member())
            .map(|row| Member { id: row.id, host: row.host.clone() })
            .collect();
        members.sort_by(|one, other| one.host.cmp(&other.host));
        let leaving = rows.iter().filter(|row| row.state == State::Leaving);
        let leaving = leaving.map(|row| row.host.clone()).collect();
        Ok(Answer { members, leaving, ..Answer::default() })
    };
    let mut answers: Answers = all
        .iter()
        .map(|(address, said)| {
            let said = said.as_ref().map_err(Clone::clone);
            (address.clone(), said.and_then(|rows| judge(address, rows)))
        })
        .collect();
    // None leads: the first is asked for what concerns all.
    if let Some(first) = answers.values_mut().find_map(|said| said.as_mut().ok()) {
        first.is_leader = true;
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::View;

    const THREE: &str = include_str!("status/three.txt");

    fn seen(text: &str) -> Result<Vec<Row>, String> {
        parse(text)
    }

    fn view(all: &[(&str, Result<Vec<Row>, String>)]) -> Result<View, String> {
        let all = all.iter().map(|(host, said)| ((*host).to_owned(), said.clone())).collect();
        let view = View::of(&answers(&all), str::to_owned, |_| false);
        view.map_err(|why| why.0)
    }

    fn lost() -> Result<Vec<Row>, String> {
        Err("connection refused".to_owned())
    }

    #[test]
    fn what_nodetool_says_is_read_with_and_without_a_load() {
        let rows = parse(THREE).unwrap();
        let words: Vec<_> = rows.iter().map(|row| (row.host.as_str(), row.words())).collect();
        assert_eq!(words, [("127.3.0.3", "joining"), ("127.3.0.2", "down"), ("127.3.0.1", "up")]);
        assert!(parse("nodetool: Failed to connect").unwrap_err().contains("Failed to connect"));
        assert!(parse("").is_err());
    }

    #[test]
    fn one_that_joins_is_no_member_and_one_that_leaves_is_still() {
        let joins = THREE.replace("DN", "UN");
        let two = view(&[
            ("127.3.0.1", seen(&joins)),
            ("127.3.0.2", seen(&joins)),
            ("127.3.0.3", seen(&joins)),
        ]);
        let two = two.unwrap();
        assert_eq!((two.members.len(), two.serving.len()), (2, 2));
        assert_eq!(two.leader, "127.3.0.1");
        let leaves = joins.replace("UJ", "UL");
        let three = view(&[
            ("127.3.0.1", seen(&leaves)),
            ("127.3.0.2", seen(&leaves)),
            ("127.3.0.3", seen(&leaves)),
        ]);
        assert_eq!(three.unwrap().serving.len(), 3);
    }

    #[test]
    fn one_that_the_others_do_not_see_does_not_serve() {
        let all_up = THREE.replace("DN", "UN").replace("UJ", "UN");
        let not_second = THREE.replace("UJ", "UN");
        let view = view(&[
            ("127.3.0.1", seen(&not_second)),
            ("127.3.0.2", seen(&all_up)),
            ("127.3.0.3", seen(&not_second)),
        ]);
        let view = view.unwrap();
        assert!(view.has("127.3.0.2") && !view.serving.contains("127.3.0.2"), "{view:?}");
    }

    #[test]
    fn without_most_of_them_or_when_they_disagree_nothing_is_decided() {
        let all = THREE.replace("DN", "UN").replace("UJ", "UN");
        let one = view(&[("127.3.0.1", seen(&all)), ("127.3.0.2", lost()), ("127.3.0.3", lost())]);
        assert_eq!(one.unwrap_err(), "1 of 3 members answer");
        let fewer: String =
            all.lines().filter(|line| !line.contains("127.3.0.3")).collect::<Vec<_>>().join("\n");
        let apart = view(&[("127.3.0.1", seen(&all)), ("127.3.0.2", seen(&fewer))]);
        assert!(apart.unwrap_err().contains("disagree"));
    }
}
