//! From a list of typed functions to the exports of the contract.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

pub use crate::bindings::opensdn::policy::types::Step;
use crate::{
    Failure, Index, Message, Outcome, Patch, Reads, Request, Verdict,
    bindings::opensdn::policy::types as wire, finding::message_into_wire, reads::without_value,
};

/// The settings of a policy that has none.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// The interest that a function's signature declares; `O` is what the function fills.
pub fn interest<T: Reads, S, O>(
    _: fn(&Request<T>, &S, &mut O) -> Outcome,
    step: Step,
) -> wire::Interest {
    wire::Interest {
        step,
        group: T::GROUP.to_owned(),
        kind: T::KIND.to_owned(),
        operations: T::OPERATIONS.iter().map(|operation| operation.into_wire()).collect(),
        reads: T::POINTERS.iter().map(|pointer| (*pointer).to_owned()).collect(),
    }
}

/// Where the host reads which codes refuse an update also for what is stored already.
const NEVER_RATCHETS: &str = "x-opensdn-never-ratchets";

/// Where who judges without a cluster reads which codes say that an object of a kind is not there.
const TELLS_ABSENCE: &str = "x-opensdn-tells-absence";

/// The metadata of a policy.
pub fn metadata<S: JsonSchema>(
    (name, version, summary): (&str, &str, &str),
    interests: Vec<wire::Interest>,
    indexes: &[Index],
    messages: &[Message],
    (never_ratchets, absences): (&[Message], &[(Message, Index)]),
    claims: bool,
) -> wire::Metadata {
    let mut settings = schemars::schema_for!(S);
    if !never_ratchets.is_empty() {
        let codes: Vec<&str> = never_ratchets.iter().map(|message| message.code).collect();
        settings.insert(NEVER_RATCHETS.to_owned(), codes.into());
    }
    if !absences.is_empty() {
        let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (message, index) in absences {
            kinds.entry(message.code).or_default().push(index.kind);
        }
        let kinds = kinds.into_iter().map(|(code, kinds)| match kinds.as_slice() {
            [kind] => (code, serde_json::Value::from(*kind)),
            _ => (code, kinds.into()),
        });
        settings.insert(TELLS_ABSENCE.to_owned(), kinds.collect::<serde_json::Value>());
    }
    wire::Metadata {
        name: name.to_owned(),
        version: version.to_owned(),
        summary: summary.to_owned(),
        interests,
        indexes: indexes.iter().map(|index| index.into_wire()).collect(),
        messages: messages.iter().map(message_into_wire).collect(),
        settings_schema: settings.as_value().to_string(),
        claims,
    }
}

/// Runs one validating function.
///
/// # Errors
/// The settings or the object are unreadable, or the function was inconclusive.
pub fn run_validate<T: Reads, S: DeserializeOwned>(
    function: fn(&Request<T>, &S, &mut Verdict) -> Outcome,
    request: wire::Request,
    settings: &str,
) -> Result<wire::Verdict, String> {
    let settings = parse_settings(settings)?;
    let request = Request::from_wire(request).map_err(|failure| failure.0)?;
    let mut verdict = Verdict::default();
    function(&request, &settings, &mut verdict).map_err(|failure| failure.0)?;
    Ok(verdict.into_wire())
}

/// Runs one mutating function.
///
/// An object that does not have the declared types yields no patch: mutation comes before schema
/// validation, whose message is better than ours.
///
/// # Errors
/// The settings are unreadable, or the function was inconclusive.
pub fn run_mutate<T: Reads, S: DeserializeOwned>(
    function: fn(&Request<T>, &S, &mut Patch) -> Outcome,
    request: wire::Request,
    settings: &str,
) -> Result<Vec<wire::PatchOperation>, String> {
    let settings = parse_settings(settings)?;
    let Ok(request) = Request::from_wire(request) else { return Ok(Vec::new()) };
    let mut patch = Patch::new();
    function(&request, &settings, &mut patch).map_err(|failure| failure.0)?;
    Ok(patch.into_wire())
}

/// The host called with an interest that the policy does not have: a defect of the host.
#[must_use]
pub fn unknown_interest(number: u32) -> Failure {
    Failure(format!("this policy has no interest number {number}"))
}

fn parse_settings<S: DeserializeOwned>(settings: &str) -> Result<S, String> {
    serde_json::from_str(settings)
        .map_err(|error| format!("the settings are unreadable: {}", without_value(&error)))
}

/// Makes the component of a policy's functions. One call per crate, at its root.
///
/// `never_ratchets`, `tells_absence`, `indexes`, `claims`, `validate` and `mutate` may be left out. An
/// update is not refused for what the stored object has wrong already, except by the messages in
/// `never_ratchets`: for what must go whenever it is seen. `tells_absence` names the messages that say
/// that an object is not there, each with the index that was asked: `validate` leaves them out where it
/// knows no object of the kind at all.
#[macro_export]
macro_rules! policy {
    (
        name: $name:expr,
        summary: $summary:expr,
        settings: $settings:ty,
        messages: [$($message:expr),* $(,)?],
        $(never_ratchets: [$($lasting:expr),* $(,)?],)?
        $(tells_absence: [$($absence:expr),* $(,)?],)?
        $(indexes: [$($index:expr),* $(,)?],)?
        $(claims: $claims:expr,)?
        $(validate: [$($validate:path),* $(,)?],)?
        $(mutate: [$($mutate:path),* $(,)?],)?
    ) => {
        /// The policy; call its [`Guest`]($crate::bindings::Guest) functions to run it natively.
        pub struct ExportedPolicy;

        impl $crate::bindings::Guest for ExportedPolicy {
            fn describe() -> $crate::bindings::Metadata {
                use $crate::exported::{Step, interest};
                let interests = vec![
                    $($(interest($validate, Step::Validate),)*)?
                    $($(interest($mutate, Step::Mutate),)*)?
                ];
                $crate::exported::metadata::<$settings>(
                    ($name, env!("CARGO_PKG_VERSION"), $summary),
                    interests,
                    &[$($($index),*)?],
                    &[$($message),*],
                    (&[$($($lasting),*)?], &[$($($absence),*)?]),
                    false $(|| $claims)?,
                )
            }

            #[allow(unused_variables, reason = "a policy may have no function of this step")]
            fn validate(
                request: $crate::bindings::Request,
                settings: String,
            ) -> Result<$crate::bindings::Verdict, String> {
                let number = request.interest;
                let mut next = 0_u32;
                $($(
                    if number == next {
                        return $crate::exported::run_validate($validate, request, &settings);
                    }
                    next += 1;
                )*)?
                Err($crate::exported::unknown_interest(number).0)
            }

            #[allow(unused_variables, reason = "a policy may have no function of this step")]
            fn mutate(
                request: $crate::bindings::Request,
                settings: String,
            ) -> Result<Vec<$crate::bindings::PatchOperation>, String> {
                let number = request.interest;
                let mut next = 0_u32;
                $($(
                    let _ = stringify!($validate);
                    next += 1;
                )*)?
                $($(
                    if number == next {
                        return $crate::exported::run_mutate($mutate, request, &settings);
                    }
                    next += 1;
                )*)?
                Err($crate::exported::unknown_interest(number).0)
            }
        }

        // Natively the exports would only collide with those of another policy in the program.
        #[cfg(target_arch = "wasm32")]
        $crate::bindings::export_policy!(ExportedPolicy with_types_in $crate::bindings);
    };
}
