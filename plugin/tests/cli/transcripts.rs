//! The transcripts: what each command writes and with which code it ends. A transcript is made, and
//! updated, with `TRYCMD=overwrite cargo test -p kubectl-opensdn --test cli`; then read it.

/// Runs the programs of transcripts with nothing of the developer's: no cluster, no colours, no programs that shadow ours.
pub(crate) fn cases() -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases.env("HOME", "/nonexistent");
    cases.env("KUBECONFIG", "");
    cases.env("KUBERNETES_SERVICE_HOST", "");
    cases.env("LC_ALL", "C");
    cases.env("NO_COLOR", "1");
    cases.env("OPENSDN_NAMESPACE", "opensdn-system");
    cases.env("PATH", "/usr/bin:/bin");
    cases.env("XDG_CONFIG_HOME", "");
    cases.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    cases
}

#[test]
fn commands_write_and_end_as_in_their_transcripts() {
    let cases = cases();
    cases.case("tests/cmd/**/*.trycmd");
    cases.case("tests/cmd/**/*.toml");
    cases.run();
}
