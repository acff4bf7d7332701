//! Certificates that our programs make for themselves: a CA (`authority`), the certificates that
//! it issues, how it is rotated (`rotation`, pure), one that a user gives (`given`), and the Secret
//! in which all replicas share it (`secret`). What another signer is asked for is in `request`.
//!
//! Deliberately not here: when a program acts on all that, which names it bears, and who is served
//! with it. Those are parameters, or the program's own.

pub mod authority;
pub mod bundle;
pub mod der;
pub mod given;
pub mod identity;
pub mod leaf;
pub mod profile;
pub mod request;
pub mod rotation;
pub mod secret;

pub use authority::{Authority, AuthorityError, CLOCK_SKEW, Leaf};
pub use given::{GivenError, check_trusted, given};
pub use identity::{Identity, IdentityError, crypto_provider, parse_certificates};
#[cfg(feature = "rsa")]
pub use profile::RsaBits;
pub use profile::{CaProfile, KeyKind, LeafProfile, Usage, service_dns_names};
pub use request::{SigningRequest, new_key, request};
pub use rotation::{Authorities, Published, Request, Rotation, SecretState};
pub use secret::{CaSecret, ROTATE, SecretError, SecretSpec, Snapshot, parse};
