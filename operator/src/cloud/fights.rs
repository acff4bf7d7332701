//! How often what others change in a cloud is put right: a few times, then not for a while, so that two programs that
//! do not agree do not write for all time. What is wanted newly is always written.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So often within the time.
pub(super) const MOST: usize = 5;
/// The time, and how long nothing is put right then.
pub(super) const WINDOW: Duration = Duration::from_secs(60 * 60);

/// When what each object wants was put right, by its UID.
#[derive(Default)]
pub(super) struct Fights(Mutex<HashMap<String, Fight>>);

#[derive(Default)]
struct Fight {
    wanted: String,
    at: VecDeque<Instant>,
}

impl Fights {
    /// Until when nothing is put right for this wish of the object.
    pub(super) fn given_up_for(&self, uid: &str, wanted: &str, now: Instant) -> Option<Duration> {
        let fights = self.lock();
        let fight = fights.get(uid).filter(|fight| fight.wanted == wanted)?;
        let first = fight.at.len().checked_sub(MOST).and_then(|at| fight.at.get(at))?;
        (*first + WINDOW).checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// It was put right, or that was tried.
    pub(super) fn count(&self, uid: &str, wanted: &str, now: Instant) {
        let mut fights = self.lock();
        let fight = fights.entry(uid.to_owned()).or_default();
        if fight.wanted != wanted {
            *fight = Fight { wanted: wanted.to_owned(), ..Fight::default() };
        }
        fight.at.push_back(now);
        if fight.at.len() > MOST {
            fight.at.pop_front();
        }
    }

    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Fight>> {
        // A list of times cannot be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_put_right_a_few_times_and_again_after_a_while() {
        let (fights, start) = (Fights::default(), Instant::now());
        let minute = Duration::from_secs(60);
        for number in 0..MOST {
            assert_eq!(fights.given_up_for("a", "1", start), None, "{number}");
            fights.count("a", "1", start + minute * u32::try_from(number).unwrap());
        }
        assert_eq!(fights.given_up_for("a", "1", start + minute * 5), Some(WINDOW - minute * 5));
        assert_eq!(fights.given_up_for("b", "1", start + minute * 5), None);
        assert_eq!(fights.given_up_for("a", "1", start + WINDOW), None);
        fights.count("a", "1", start + WINDOW);
        assert!(fights.given_up_for("a", "1", start + WINDOW).is_some());
    }

    #[test]
    fn what_is_wanted_newly_is_written() {
        let (fights, now) = (Fights::default(), Instant::now());
        (0..MOST).for_each(|_| fights.count("a", "1", now));
        assert!(fights.given_up_for("a", "1", now).is_some());
        assert_eq!(fights.given_up_for("a", "2", now), None);
        fights.count("a", "2", now);
        assert_eq!(fights.given_up_for("a", "2", now), None);
        fights.forget("a");
        assert_eq!(fights.given_up_for("a", "1", now), None);
    }
}
