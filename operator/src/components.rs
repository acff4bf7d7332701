//! The kinds that the operator makes run: one line each.

mod query_engine;
mod redis;
mod zookeeper;

use crate::component::Component;

/// All that it makes run.
pub static COMPONENTS: &[&dyn Component] = &[&query_engine::QueryEngine, &redis::Redis];
/// Those that are described and tried on the real service, and that it does not make run yet.
pub static IN_TRIAL: &[&dyn Component] = &[&zookeeper::Zookeeper];

/// All that are described.
pub fn described() -> impl Iterator<Item = &'static dyn Component> {
    COMPONENTS.iter().chain(IN_TRIAL).copied()
}

/// The component of that kind that it makes run.
#[must_use]
pub fn of_kind(kind: &str) -> Option<&'static dyn Component> {
    COMPONENTS.iter().copied().find(|component| component.facts().kind == kind)
}
