//! Placeholder of the first minutes.
