//! Which of two objects is older: the claims go by `creationTimestamp`, which has whole seconds, so
//! that of two that were created within one second either may count as the older.

use std::time::Duration;

/// Returns when the next object stored will be newer than all that are stored already.
pub async fn wait_for_next_second() {
    // Whole seconds are the API server's resolution: nothing shows when the next one begins there.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
}
