//! Tests come below.
