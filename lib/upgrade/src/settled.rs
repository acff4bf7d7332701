//! For how long a pod has to be ready before the next one is replaced, where Kubernetes counts that (`minReadySeconds`).

/// Of Control, in seconds. Agents have sessions with two. One whose session was reset tries again after 30 s at most
/// (`xmpp_state_machine.cc`, `GetConnectTime`), and how long a new pod reads its configuration is not known: else some would
/// lose both.
pub const CONTROL: i32 = 60;
/// Of a service with a pod on each node, in seconds.
pub const OF_NODES: i32 = 30;

/// Of this kind, in seconds, if it is not replaced as soon as the one before is ready.
pub(crate) fn of_kind(kind: &str) -> Option<i32> {
    match kind {
        "Control" => Some(CONTROL),
        "Vrouter" => Some(OF_NODES),
        _ => None,
    }
}
