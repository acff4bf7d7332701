//! The kinds that the operator makes run: one line each.

mod query_engine;
mod redis;

use crate::component::Component;

/// All of them.
pub static COMPONENTS: &[&dyn Component] = &[&query_engine::QueryEngine, &redis::Redis];

/// The component of that kind.
#[must_use]
pub fn of_kind(kind: &str) -> Option<&'static dyn Component> {
    COMPONENTS.iter().copied().find(|component| component.facts().kind == kind)
}
