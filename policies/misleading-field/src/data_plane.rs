//! A DPDK process as data plane: whether what is said of it is enough to start. Where profiles are named they may say the
//! rest, so nothing is judged then.

use opensdn_policy_components::dpdk::Pages;
use opensdn_policy_components::{ComponentView, dpdk};
use opensdn_policy_sdk::{Message, Severity, Verdict};
use serde_json::Value;

use crate::Spec;

pub(crate) const DPDK: Message = Message {
    code: "OSDN1826",
    severity: Severity::Deny,
    title: "a DPDK process would not start with these settings",
    explanation: "It ends with less than two cores that forward; the image's own CPU_CORE_MASK is one. It takes its memory of \
        huge pages, DPDK_MEM_PER_SOCKET (1024) MiB of each NUMA node, and its two tables besides, which take a page of 1 GiB each \
        where there are no others. Our operator makes no pods of such a Vrouter (DpdkIncomplete); the agent would wait for \
        the process, end after five minutes, and wait again.",
    hint: "give dpdk.coreMask with two cores or more, and dpdk.hugePages1G or dpdk.hugePages2M",
};

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    let Some(block) = given.0.get("dpdk").filter(|_| !given.names_profiles()) else { return };
    let [large, small] = ["hugePages1G", "hugePages2M"];
    let is_own = given.has(large) || given.has(small);
    let pages = |field: &str| {
        let said =
            if is_own { given.number(field) } else { block.get(field).and_then(Value::as_i64) };
        said.and_then(|said| u64::try_from(said).ok()).unwrap_or_default()
    };
    let pages = Pages { large: pages(large), small: pages(small) };
    let cores = block.get("coreMask").and_then(Value::as_str);
    if let Some(why) = dpdk::obstacle(cores, pages, |name| given.variable(name)) {
        let text = format!("{}: {why}", component.title());
        verdict.add(DPDK.at(component.setting("/dpdk")).says(text));
    }
}
