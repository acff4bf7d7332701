//! One macro: an enum of fixed words, with its JSON words, its `Display` and its schema in one
//! list. A derive would turn documented variants into `oneOf`, which a structural schema may
//! not have, and would lose the documentation of the field that uses the enum.

macro_rules! enumeration {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$variant_about:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, serde::Deserialize, serde::Serialize)]
        pub enum $name {
            $($(#[$variant_about])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the schema.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word that stands in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        #[cfg(feature = "kube")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word),+] })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}
