//! The waves, and which kinds are in each: first the new images are brought to the nodes, then a service comes after all that it needs, as when it is installed, and vrouters
//! come last, for each that is replaced interrupts its node.

/// A wave, as it is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// Its name, in commands and reports.
    pub name: &'static str,
    /// The kinds in it, of which none needs another.
    pub kinds: &'static [&'static str],
}

/// The wave in which nodes pull the new images: nothing is changed in it.
pub const IMAGES: &str = "images";

/// All waves, in their order.
pub const WAVES: &[Wave] = &[
    Wave { name: IMAGES, kinds: &[] },
    Wave { name: "data-stores", kinds: &["Cassandra", "Zookeeper", "Rabbitmq", "Redis"] },
    Wave { name: "config", kinds: &["Config"] },
    Wave { name: "control", kinds: &["Control", "Kubemanager"] },
    Wave { name: "analytics", kinds: &["Analytics"] },
    Wave { name: "analytics-services", kinds: &["QueryEngine", "AnalyticsAlarm", "AnalyticsSnmp"] },
    Wave { name: "web-ui", kinds: &["Webui"] },
    Wave { name: "vrouters", kinds: &["Vrouter"] },
];

/// Of these no pod is looked at before the others are replaced: of kube-managers one works.
const NO_CANARY: &[&str] = &["Kubemanager"];

/// Whether one pod of the kind is replaced first, and looked at for a while.
#[must_use]
pub fn has_canary(kind: &str) -> bool {
    !NO_CANARY.contains(&kind)
}

/// The wave of a kind.
#[must_use]
pub fn wave_of(kind: &str) -> Option<&'static Wave> {
    WAVES.iter().find(|wave| wave.kinds.contains(&kind))
}

#[cfg(test)]
mod tests {
    use opensdn_crds::component::COMPONENTS;

    use super::*;

    fn place(kind: &str) -> usize {
        WAVES.iter().position(|wave| wave.kinds.contains(&kind)).unwrap()
    }

    #[test]
    fn a_service_comes_after_all_that_it_needs_and_vrouters_come_last() {
        for component in COMPONENTS {
            for need in component.needs {
                assert!(place(need.kind) < place(component.kind), "{}", component.kind);
            }
        }
        assert_eq!(place("Vrouter"), WAVES.len() - 1);
    }

    #[test]
    fn each_kind_is_in_one_wave() {
        let all: Vec<_> = WAVES.iter().flat_map(|wave| wave.kinds).collect();
        assert_eq!(all.len(), COMPONENTS.len());
        assert!(COMPONENTS.iter().all(|one| wave_of(one.kind).is_some()));
    }
}
