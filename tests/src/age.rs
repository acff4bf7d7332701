//! Who is older than whom: the keeper of claims goes by `creationTimestamp`, which has whole
//! seconds, so that of two that were made at once either may count as the older.

use std::time::Duration;

/// Returns when whatever is stored now is younger than all that is stored already.
pub async fn whoever_comes_now_is_younger() {
    tokio::time::sleep(Duration::from_millis(1_100)).await;
}
