//! Which passes are made, and what becomes of one that fails.

use super::*;

#[tokio::test]
async fn a_pass_that_panics_has_failed_and_the_process_goes_on() {
    let ended = apart::<Action>(async { panic!("what an object says") }).await;
    assert!(matches!(ended, Err(Error::Panicked)));
    assert!(apart(async { Ok(1) }).await.is_ok_and(|one| one == 1));
}
