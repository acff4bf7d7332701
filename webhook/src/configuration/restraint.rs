//! How often a webhook configuration is put right that another client changes again and again, as another
//! program that takes it for its own. The first repairs are made at once; then each waits twice as long
//! as the one before, up to a bound, so that the two do not write without end. When it has been left
//! alone for a while, it starts again. Deliberately not here: what is a repair.

use std::time::Duration;

use tokio::time::Instant;

/// So many repairs are made at once.
pub(super) const AT_ONCE: u32 = 5;
/// How long the next one waits.
const FIRST_DELAY: Duration = Duration::from_secs(2);
/// No repair waits for longer: so long may be unjudged what another client keeps from us.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Who has left it alone for so long fights no more.
const QUIET: Duration = Duration::from_secs(600);

/// What is remembered of the repairs of one configuration.
#[derive(Debug, Default)]
pub(super) struct Restraint {
    repairs: u32,
    last: Option<Instant>,
}

/// Whether a repair may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Now.
    Now,
    /// After this time.
    Later(Duration),
}

impl Restraint {
    /// Whether it may be put right at this time.
    pub(super) fn check(&self, now: Instant) -> Repair {
        let Some(last) = self.last else { return Repair::Now };
        let passed = now.saturating_duration_since(last);
        match self.delay().checked_sub(passed) {
            None | Some(Duration::ZERO) => Repair::Now,
            Some(left) => Repair::Later(left),
        }
    }

    /// It was put right at this time. How often, since it was left alone.
    pub(super) fn repaired(&mut self, now: Instant) -> u32 {
        let is_quiet = self.last.is_some_and(|last| now.saturating_duration_since(last) >= QUIET);
        self.repairs = if is_quiet { 1 } else { self.repairs.saturating_add(1) };
        self.last = Some(now);
        self.repairs
    }

    fn delay(&self) -> Duration {
        let Some(doublings) = self.repairs.checked_sub(AT_ONCE) else { return Duration::ZERO };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        FIRST_DELAY.saturating_mul(factor).min(LONGEST_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts right what is changed again at once, for that long; when it was put right.
    fn fight(restraint: &mut Restraint, start: Instant, window: Duration) -> Vec<Duration> {
        let (mut now, mut repairs) = (start, Vec::new());
        while now - start < window {
            match restraint.check(now) {
                Repair::Now => {
                    repairs.push(now - start);
                    restraint.repaired(now);
                }
                Repair::Later(left) => now += left,
            }
        }
        repairs
    }

    #[test]
    fn the_first_repairs_are_made_at_once_and_then_ever_later_up_to_a_minute() {
        let (mut restraint, start) = (Restraint::default(), Instant::now());
        let window = Duration::from_secs(600);
        let repairs = fight(&mut restraint, start, window);
        let seconds: Vec<u64> = repairs.iter().map(Duration::as_secs).collect();
        let expected = [0, 0, 0, 0, 0, 2, 6, 14, 30, 62, 122, 182, 242, 302, 362, 422, 482, 542];
        assert_eq!(seconds, expected);
        // However long it lasts.
        let hour = fight(&mut restraint, start + window, Duration::from_secs(3_600));
        assert!(hour.len() <= 60, "{}", hour.len());
    }

    #[test]
    fn who_was_left_alone_starts_again() {
        let (mut restraint, start) = (Restraint::default(), Instant::now());
        let window = Duration::from_secs(100);
        fight(&mut restraint, start, window);
        assert!(matches!(restraint.check(start + window), Repair::Later(_)));
        let later = start + window + QUIET;
        assert_eq!(restraint.check(later), Repair::Now);
        assert_eq!(restraint.repaired(later), 1);
        assert_eq!(restraint.check(later), Repair::Now);
    }

    #[test]
    fn a_change_now_and_then_is_put_right_at_once() {
        let (mut restraint, mut now) = (Restraint::default(), Instant::now());
        for _ in 0..20 {
            assert_eq!(restraint.check(now), Repair::Now);
            restraint.repaired(now);
            now += LONGEST_DELAY;
        }
    }
}
