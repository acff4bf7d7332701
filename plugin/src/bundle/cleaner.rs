//! Takes secrets out of texts in threads for just that, as many at once as there are processors: answers are read
//! meanwhile, and an interrupt ends the command whatever they work at.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::collect::Found;
use super::redactor::Redactor;

/// A text that takes longer is made for it, and is left out. One of 10 MiB takes some seconds.
const LONGEST: Duration = Duration::from_secs(120);

/// How secrets are taken out of a text.
pub(crate) type How = fn(&Redactor, &str) -> String;

/// For one bundle.
#[derive(Clone, Debug)]
pub(crate) struct Cleaner {
    redactor: Arc<Redactor>,
    turns: Arc<Semaphore>,
    longest: Duration,
}

impl Cleaner {
    pub(crate) fn new(redactor: Arc<Redactor>) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self { redactor, turns: Arc::new(Semaphore::new(processors)), longest: LONGEST }
    }

    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// The text without its secrets.
    pub(crate) async fn clean(&self, text: String, how: How) -> Found {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let redactor = Arc::clone(&self.redactor);
        let clean = spawn_blocking(move || how(&redactor, &text));
        match timeout(self.longest, clean).await {
            Ok(Ok(clean)) => Found::Content(clean.into_bytes()),
            Ok(Err(_)) => Found::Failed("secrets could not be taken out of it".to_owned()),
            Err(_) => Found::Failed(format!(
                "looking for secrets in it took longer than {} s: read it by hand",
                self.longest.as_secs()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_text_that_takes_too_long_is_left_out_and_the_next_has_its_turn() {
        let turns = Arc::new(Semaphore::new(1));
        let cleaner =
            Cleaner { redactor: Arc::default(), turns, longest: Duration::from_millis(1) };
        static AT_WORK: Mutex<()> = Mutex::const_new(());
        let until_the_end_of_the_test = AT_WORK.lock().await;
        let how: How = |_, text| {
            drop(AT_WORK.blocking_lock());
            text.to_owned()
        };
        for _ in 0..2 {
            let found = cleaner.clean("x".to_owned(), how).await;
            assert!(
                matches!(&found, Found::Failed(why) if why.contains("took longer")),
                "{found:?}"
            );
        }
        drop(until_the_end_of_the_test);
        let cleaner = Cleaner { longest: LONGEST, ..cleaner };
        let found = cleaner.clean("token=hunter2".to_owned(), Redactor::text).await;
        assert_eq!(found, Found::Content(b"token=<redacted>".to_vec()));
    }
}
