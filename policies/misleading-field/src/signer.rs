//! A signer of Kubernetes that issues no certificates as OpenSDN needs them.

use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

pub(crate) const SIGNER: Message = Message {
    code: "OSDN1902",
    severity: Severity::Warn,
    title: "this signer of Kubernetes issues no certificates for OpenSDN",
    explanation: "tf-operator asks one signer for all certificates. By kubernetes.io/kubelet-serving they are for servers \
        alone, by the other signers of kubernetes.io for clients alone, and the daemons are both; \
        kubernetes.io/legacy-unknown is not in the API by which it asks, certificates.k8s.io/v1, nor is the empty name, \
        which it does not take for unset: no service gets any. Our operator asks none of \
        these: its own CA issues the certificates.",
    hint: "remove certSigner, or set it to SelfSignedCA; our operator asks other signers too, of which tf-operator can use none",
};

/// `at` is where the signer is.
pub(crate) fn judge(signer: &str, at: Pointer, verdict: &mut Verdict) {
    if signer.is_empty() {
        let text = "certSigner is empty: tf-operator asks the signers of Kubernetes, of which none is called so";
        verdict.add(SIGNER.at(at).says(text));
        return;
    }
    let Some(name) = signer.strip_prefix("kubernetes.io/") else { return };
    let issues = match name {
        "legacy-unknown" => "no certificates that can be asked for",
        "kubelet-serving" => "certificates for servers alone",
        "kube-apiserver-client" | "kube-apiserver-client-kubelet" => {
            "certificates for clients alone"
        }
        _ => "no certificates that OpenSDN is known to work with",
    };
    let text = format!("certSigner {signer} issues {issues}");
    verdict.add(SIGNER.at(at).says(text));
}
