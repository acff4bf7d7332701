//! VrouterProfiles (pure): those that a Vrouter names are laid over each other in the order of its list, field by field, so
//! that of two that say the same thing the later one wins. What the Vrouter says itself wins over all of them, but for
//! variables of the environment, where those of profiles win.

use std::collections::BTreeMap;

use opensdn_crds::vrouter::VrouterConfiguration;
use opensdn_crds::vrouter_profile::{Dpdk, Sriov, VrouterProfileSpec, lay_over, merged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Writes into the settings what the profiles say, and returns their variables.
pub(super) fn merge(
    settings: &mut VrouterConfiguration,
    profiles: &[Value],
) -> Result<BTreeMap<String, String>, serde_json::Error> {
    let merged: VrouterProfileSpec = serde_json::from_value(merged(profiles))?;
    settings.dpdk = over(merged.dpdk, settings.dpdk.take())?;
    settings.sriov = over(merged.sriov, settings.sriov.take())?;
    let Dpdk { huge_pages_2m, huge_pages_1g, uio_driver, .. } =
        settings.dpdk.clone().unwrap_or_default();
    if settings.huge_pages_1g.is_none() && settings.huge_pages_2m.is_none() {
        (settings.huge_pages_1g, settings.huge_pages_2m) = (huge_pages_1g, huge_pages_2m);
    }
    settings.dpdk_uio_driver = settings.dpdk_uio_driver.take().or(uio_driver);
    let Sriov { physical_interface, .. } = settings.sriov.clone().unwrap_or_default();
    settings.sriov_physical_interface =
        settings.sriov_physical_interface.take().or(physical_interface);
    Ok(merged.more_config.unwrap_or_default())
}

/// The second over the first.
fn over<Part: Serialize + DeserializeOwned>(
    first: Option<Part>,
    second: Option<Part>,
) -> Result<Option<Part>, serde_json::Error> {
    let mut merged = serde_json::to_value(first)?;
    if let Some(second) = second {
        lay_over(&mut merged, &serde_json::to_value(second)?);
    }
    serde_json::from_value(merged)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings_of(
        own: Value,
        profiles: Value,
    ) -> (VrouterConfiguration, BTreeMap<String, String>) {
        let mut settings = serde_json::from_value(own).unwrap();
        let variables = merge(&mut settings, profiles.as_array().unwrap()).unwrap();
        (settings, variables)
    }

    #[test]
    fn the_later_profile_wins_and_the_group_itself_over_both() {
        let profiles = json!([
            {"dpdk": {"coreMask": "0x1", "hugePages2M": 1, "uioDriver": "a"}, "moreConfig": {"A": "1", "B": "1"}},
            {"dpdk": {"coreMask": "0x2"}, "sriov": {"physicalInterface": "eth1", "numberOfVfs": 4}, "moreConfig": {"B": "2"}},
        ]);
        let (settings, variables) = settings_of(json!({"dpdk": {"uioDriver": "b"}}), profiles);
        let dpdk = settings.dpdk.unwrap();
        assert_eq!(dpdk.core_mask.as_deref(), Some("0x2"));
        assert_eq!(settings.dpdk_uio_driver.as_deref(), Some("b"));
        assert_eq!(settings.huge_pages_2m, Some(1));
        assert_eq!(settings.sriov_physical_interface.as_deref(), Some("eth1"));
        assert_eq!(variables, [("A".into(), "1".into()), ("B".into(), "2".into())].into());
    }

    #[test]
    fn a_later_profile_for_the_other_data_plane_leaves_nothing_of_the_first() {
        let dpdk = json!({"dpdk": {"coreMask": "0x1"}});
        let (settings, _) = settings_of(json!({}), json!([dpdk, {"kernel": {}}]));
        assert_eq!(settings.dpdk, None);
        let (settings, _) = settings_of(json!({}), json!([{"kernel": {}}, dpdk]));
        assert!(settings.dpdk.is_some());
        assert_eq!(settings_of(json!({}), json!([])).0, VrouterConfiguration::default());
    }
}
