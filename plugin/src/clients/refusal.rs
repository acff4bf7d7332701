//! What a refusal of the API server means for who asked: rights are missing only where it says so. Much else is said by 403 as
//! well: a quota, a namespace that is on its way out, Pod Security, a webhook.

use kube::core::Status;

/// A word for scripts, and what to do.
pub(super) fn advice(status: &Status) -> (&'static str, &'static str) {
    match status.code {
        401 => ("unauthenticated", "log in again: the API server does not know who you are"),
        403 => forbidden(status),
        _ if opensdn_error_chain::is_of_webhook(&status.message) => (
            "webhook-silent",
            "the webhook that the cause names does not answer, and is asked about this change: kubectl opensdn status says whether ours \
             does, kubectl opensdn check --only K007 to which configuration another belongs; until it does, nothing is changed",
        ),
        _ => ("refused-by-server", ""),
    }
}

fn forbidden(status: &Status) -> (&'static str, &'static str) {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let is_ending =
        causes.map(|cause| cause.reason.as_str()).any(|one| one == "NamespaceTerminating");
    let says = |part: &str| status.message.contains(part);
    if is_ending || says("because it is being terminated") {
        let hint = "wait until the namespace is gone (kubectl get namespaces), then the same command again";
        ("namespace-terminating", hint)
    } else if says("exceeded quota") || says("failed quota") || says("status unknown for quota") {
        (
            "quota-exceeded",
            "free some of the quota that the cause names, or raise it: kubectl get resourcequotas -A",
        )
    } else if says("violates PodSecurity") {
        let hint = "the namespace needs the label pod-security.kubernetes.io/enforce=privileged";
        ("refused-by-admission", hint)
    } else if says("admission webhook") || says("ValidatingAdmissionPolicy") {
        ("refused-by-admission", "the cause names who refuses it: ask who looks after that")
    } else if says(" cannot ")
        || status.message.is_empty()
        || says("unable to validate against any security context")
    {
        ("forbidden", "ask for the right that the cause names, or use another --context")
    } else {
        (
            "forbidden",
            "the cause says what forbids it; if it is a right, ask for it, or use another --context",
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(message: &str, cause: Option<&str>) -> (&'static str, &'static str) {
        let causes: Vec<_> = cause.iter().map(|reason| json!({"reason": reason})).collect();
        let status = json!({"code": 403, "message": message, "details": {"causes": causes}});
        advice(&serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_webhook_that_does_not_answer_is_called_so() {
        let message =
            "Internal error occurred: failed calling webhook \"a.b\": context deadline exceeded";
        let status = json!({"code": 500, "message": message});
        assert_eq!(advice(&serde_json::from_value(status).unwrap()).0, "webhook-silent");
    }

    #[test]
    fn only_what_rbac_forbids_is_a_right_that_is_missing() {
        let rbac = "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" at the cluster scope";
        assert_eq!(said(rbac, None).0, "forbidden");
        assert!(said(rbac, None).1.contains("right"));
        // As kube-apiserver 1.35 says them.
        for (message, cause, code) in [
            (
                "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
                None,
                "quota-exceeded",
            ),
            (
                "pods \"x\" is forbidden: failed quota: q: must specify limits.cpu for: c",
                None,
                "quota-exceeded",
            ),
            (
                "configmaps \"x\" is forbidden: unable to create new content in namespace tf because it is being terminated",
                Some("NamespaceTerminating"),
                "namespace-terminating",
            ),
            ("in words of another release", Some("NamespaceTerminating"), "namespace-terminating"),
            (
                "pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)",
                None,
                "refused-by-admission",
            ),
            (
                "admission webhook \"a.example.com\" denied the request: no",
                None,
                "refused-by-admission",
            ),
        ] {
            let (found, hint) = said(message, cause);
            assert_eq!(found, code, "{message}");
            assert!(!hint.contains("right"), "{message}: {hint}");
        }
    }
}
