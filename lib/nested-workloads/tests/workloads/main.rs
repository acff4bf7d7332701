//! The workloads as a whole: of the worked example, and beside upstream's manifest.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

mod example;
mod render;
mod started;
mod stock;
