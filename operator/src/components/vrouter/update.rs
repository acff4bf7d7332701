//! How the pods of a group are replaced.

use opensdn_crds::vrouter::{UpgradeType, VrouterConfiguration};

use crate::component::Update;

/// As `upgradeStrategy` says.
pub(super) fn update(settings: &VrouterConfiguration) -> Update {
    let strategy = settings.upgrade_strategy.clone().unwrap_or_default();
    match strategy.type_ {
        Some(UpgradeType::OnDelete) => Update::OnDelete,
        Some(UpgradeType::RollingUpdate) | None => {
            let at_once = strategy.max_unavailable.unwrap_or(1).max(1);
            Update::Rolling(i32::try_from(at_once).unwrap_or(i32::MAX))
        }
    }
}
