//! What is read of the serviceConfiguration of any service; each kind has some of it. Which fields
//! are about ports, the table of components says.

use std::fmt;

use opensdn_policy_components::component::{COMPONENTS, Open, Setting};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Configuration {
    // Vrouter
    pub(crate) control_instance: Option<String>,
    // Control, Vrouter
    pub(crate) data_subnet: Option<String>,
    pub(crate) subcluster: Option<String>,
    // Control
    pub(crate) asn_number: Scalar,
    // Config
    pub(crate) global_asn_number: Scalar,
    // Kubemanager: whether it is nested
    pub(crate) nested: Option<IgnoredAny>,
    about_ports: Vec<(&'static str, Scalar)>,
}

impl Configuration {
    /// The number in a field that the table of components names.
    pub(crate) fn number(&self, field: &str) -> Option<i64> {
        self.find(field).number()
    }

    /// The truth in a field that the table of components names.
    pub(crate) fn switch(&self, field: &str) -> Option<bool> {
        match self.find(field) {
            Scalar::Switch(on) => Some(on),
            Scalar::Number(_) | Scalar::Other => None,
        }
    }

    fn find(&self, field: &str) -> Scalar {
        let found = self.about_ports.iter().find(|(name, _)| *name == field);
        found.map(|(_, value)| *value).unwrap_or_default()
    }
}

/// The field's name as the table has it, if that is about a port.
fn about_port(key: &str) -> Option<&'static str> {
    let ports = COMPONENTS.iter().flat_map(|component| component.ports);
    let fields = ports.flat_map(|port| {
        let setting = match port.setting {
            Setting::Field(field) | Setting::Above(field, _) => Some(field),
            Setting::Fixed | Setting::ShownAs(_) => None,
        };
        let open = match port.open {
            Open::WhenTrue(field) | Open::UnlessFalse(field) | Open::PerWorker(field) => {
                Some(field)
            }
            Open::Always | Open::Never => None,
        };
        [setting, open].into_iter().flatten()
    });
    fields.into_iter().find(|field| *field == key)
}

impl<'de> Deserialize<'de> for Configuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConfigurationVisitor)
    }
}

struct ConfigurationVisitor;

impl<'de> Visitor<'de> for ConfigurationVisitor {
    type Value = Configuration;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Configuration, A::Error> {
        let mut read = Configuration::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "controlInstance" => read.control_instance = map.next_value()?,
                "dataSubnet" => read.data_subnet = map.next_value()?,
                "subcluster" => read.subcluster = map.next_value()?,
                "asnNumber" => read.asn_number = map.next_value()?,
                "nested" => read.nested = map.next_value()?,
                "globalASNNumber" => read.global_asn_number = map.next_value()?,
                key => match about_port(key) {
                    Some(field) => read.about_ports.push((field, map.next_value()?)),
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                },
            }
        }
        Ok(read)
    }
}

/// A number or a truth; a text (some Vrouter fields are texts of the same name) counts as unset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Scalar {
    Number(i64),
    Switch(bool),
    #[default]
    Other,
}

impl Scalar {
    pub(crate) fn number(self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Switch(_) | Self::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number or a truth")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(i64::try_from(number).map_or(Scalar::Other, Scalar::Number))
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Scalar, E> {
        Ok(Scalar::Switch(on))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }
}
