//! Modules that are not built in: a handwritten policy that refuses every object of one kind, made
//! from the guest with which the host is tested.

use opensdn_policy_build::component_of;
use opensdn_policy_host::Digest;
use opensdn_testing::Failed;

/// The message of its one finding.
pub(crate) const MESSAGE: &str = "none of these";

/// Refuses every object of `kind` in the group. The group has 10 letters.
fn refusing(group: &str, kind: &str) -> Result<Vec<u8>, Failed> {
    judging(group, kind, "")
}

/// Does this before it refuses.
fn judging(group: &str, kind: &str, validate: &str) -> Result<Vec<u8>, Failed> {
    assert_eq!(group.len(), 10, "{group}");
    let text = include_str!("../../../sdk/host/tests/guests/policy.wat");
    // Step validate, then the group: now a string of 10 letters at 170, and the kind: at 210.
    let interest = (
        r#""\01\00\00\00" "\00\00\00\00\00\00\00\00" "\78\00\00\00\05\00\00\00""#,
        format!(
            r#""\01\00\00\00" "\aa\00\00\00\0a\00\00\00" "\d2\00\00\00\{:02x}\00\00\00""#,
            kind.len()
        ),
    );
    let names = format!(
        r#"
      (data (i32.const 170) "{group}")
      (data (i32.const 210) "{kind}")"#
    );
    let data = r#"
      (data (i32.const 190) "none of these")
      ;; one finding: code, severity deny, pointer, message, hint
      (data (i32.const 2000) "\00\00\00\00\34\08\00\00\01\00\00\00")
      (data (i32.const 2100) "\8c\00\00\00\02\00\00\00" "\00\00\00\00"
        "\00\00\00\00\00\00\00\00" "\be\00\00\00\0d\00\00\00" "\00\00\00\00\00\00\00\00")
      (func $recurse "#;
    assert!(text.contains(interest.0), "the guest is laid out differently now");
    let text = text
        .replace(interest.0, &interest.1)
        .replace("(; VALIDATE ;)", validate)
        .replace("(func $recurse ", &format!("{names}{data}"));
    Ok(component_of(&wat::parse_str(text)?)?)
}

/// Crashes on every object of `kind`.
pub(crate) fn crashing(group: &str, kind: &str) -> Result<Vec<u8>, Failed> {
    judging(group, kind, "unreachable")
}

/// `sha256:…` of the bytes.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// Refuses Gizmos.
pub(crate) fn gizmos() -> Result<Vec<u8>, Failed> {
    refusing("example.io", "Gizmo")
}

/// Refuses AdmissionPolicies.
pub(crate) fn admission_policies() -> Result<Vec<u8>, Failed> {
    refusing("opensdn.io", "AdmissionPolicy")
}
