//! Modules that are not built in: a handwritten policy that refuses every object of one kind, made
//! from the guest with which the host is tested.

use opensdn_policy_build::component_of;
use opensdn_policy_host::Digest;
use opensdn_testing::Failed;

/// The message of its one finding.
pub(crate) const MESSAGE: &str = "none of these";

/// Refuses every object of `kind` in the group `example.io`. The kind has 5 letters.
fn refusing(kind: &str) -> Result<Vec<u8>, Failed> {
    assert_eq!(kind.len(), 5, "{kind}");
    let text = include_str!("../../../sdk/host/tests/guests/policy.wat");
    // Step validate, then the group: now a string of 10 letters at 170.
    let group = (
        r#""\01\00\00\00" "\00\00\00\00\00\00\00\00""#,
        r#""\01\00\00\00" "\aa\00\00\00\0a\00\00\00""#,
    );
    let data = r#"
      (data (i32.const 170) "example.io")
      (data (i32.const 190) "none of these")
      ;; one finding: code, severity deny, pointer, message, hint
      (data (i32.const 2000) "\00\00\00\00\34\08\00\00\01\00\00\00")
      (data (i32.const 2100) "\8c\00\00\00\02\00\00\00" "\00\00\00\00"
        "\00\00\00\00\00\00\00\00" "\be\00\00\00\0d\00\00\00" "\00\00\00\00\00\00\00\00")
      (func $recurse "#;
    assert!(text.contains(group.0), "the guest is laid out differently now");
    let text = text
        .replace(group.0, group.1)
        .replace("\"Thing\"", &format!("\"{kind}\""))
        .replace("(func $recurse ", data);
    Ok(component_of(&wat::parse_str(text)?)?)
}

/// `sha256:…` of the bytes.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// Refuses Gizmos.
pub(crate) fn gizmos() -> Result<Vec<u8>, Failed> {
    refusing("Gizmo")
}
