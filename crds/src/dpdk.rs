//! What a DPDK process as data plane cannot start without, as upstream's images and the process itself have it.

use std::collections::BTreeSet;

/// The variable by which images know of which kind the data plane is, and the word for DPDK.
pub const MODE: (&str, &str) = ("AGENT_MODE", "dpdk");
/// The variable with the cores that forward.
pub const CORES: &str = "CPU_CORE_MASK";
const MEMORY: &str = "DPDK_MEM_PER_SOCKET";
/// MiB of each NUMA node (tf-container-builder, `containers/base/common.sh:45`).
const USUAL_MEMORY: u64 = 1024;
/// The image's own (`containers/base/common.sh:29`), which is one core too few.
const USUAL_CORES: &str = "0x01";
/// As the process wants them (tf-vrouter, `dpdk/dpdk_vrouter.c:612-616`).
const FEWEST_CORES: usize = 2;
/// Of flows and of the bridge (tf-vrouter, `dpdk/dpdk_vrouter.c:830-840`).
const TABLES: u64 = 2;

/// A `coreMask` as the image reads it: what has neither comma nor dash is a mask to it, in hexadecimal digits even without
/// `0x` (tf-container-builder, `containers/vrouter/agent-dpdk/entrypoint.sh:112-118`). To us one number is one core.
#[must_use]
pub fn for_image(core_mask: &str) -> String {
    let is_one_core =
        !core_mask.is_empty() && core_mask.bytes().all(|letter| letter.is_ascii_digit());
    if is_one_core { format!("{core_mask}-{core_mask}") } else { core_mask.to_owned() }
}

/// How many huge pages it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Of 1 GiB.
    pub large: u64,
    /// Of 2 MiB.
    pub small: u64,
}

/// Why it would not start with this `coreMask`, these huge pages, and these variables, which win; and what to do.
#[must_use]
pub fn obstacle<'v>(
    core_mask: Option<&str>,
    pages: Pages,
    variable: impl Fn(&str) -> Option<&'v str>,
) -> Option<String> {
    // As the image compares it: with a space it is another one.
    if let Some(mode) = variable(MODE.0).filter(|mode| *mode != MODE.1) {
        return Some(format!(
            "dpdk is given, and the variable {} is {mode:?}: remove the variable, or dpdk",
            MODE.0
        ));
    }
    let cores =
        variable(CORES).map_or_else(|| core_mask.map(for_image), |all| Some(all.to_owned()));
    let memory = variable(MEMORY).filter(|memory| !memory.is_empty());
    too_few_cores(cores.filter(|all| !all.is_empty())).or_else(|| too_few_pages(pages, memory))
}

fn too_few_cores(said: Option<String>) -> Option<String> {
    let what = match &said {
        Some(mask) => format!("the cores that forward are {mask}"),
        None => "no cores that forward are named".to_owned(),
    };
    let count = cores(said.as_deref().unwrap_or(USUAL_CORES))?;
    (count < FEWEST_CORES).then(|| {
        format!(
            "{what}, and the DPDK process ends with less than {FEWEST_CORES}: name them in dpdk.coreMask of the Vrouter or \
             of its profile, such as 2-3"
        )
    })
}

/// How many a mask or a list names, as the image reads it; nothing where it is neither.
fn cores(text: &str) -> Option<usize> {
    if !text.contains([',', '-']) {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let ones =
            digits.chars().map(|digit| usize::try_from(digit.to_digit(16)?.count_ones()).ok());
        return ones.sum();
    }
    let mut all = BTreeSet::new();
    for one in text.split(',') {
        let (first, last) = one.split_once('-').unwrap_or((one, one));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        all.extend(first..=last);
    }
    Some(all.len())
}

/// It takes its memory of each NUMA node, and of what is left the tables of flows and of the bridge, each a file of its own: of
/// pages of 1 GiB each takes a whole one (tf-vrouter, `dpdk/vr_dpdk_table_mem.c:187-252`).
fn too_few_pages(pages: Pages, memory: Option<&str>) -> Option<String> {
    let Pages { large, small } = pages;
    if (large, small) == (0, 0) {
        return Some(
            "the DPDK process has its memory in huge pages, and none are asked for: say how many in dpdk.hugePages1G or \
             dpdk.hugePages2M of the Vrouter or of its profile"
                .to_owned(),
        );
    }
    // What is no number is left to the process.
    let memory: u64 = memory.map_or(Some(USUAL_MEMORY), |memory| memory.trim().parse().ok())?;
    let needed = memory.div_ceil(1024).saturating_add(TABLES);
    if small == 0 && large < needed {
        return Some(format!(
            "{large} huge pages of 1 GiB are asked for, and the DPDK process takes {memory} MiB of each NUMA node and a whole page \
             for each of its two tables: ask for {needed} or more by dpdk.hugePages1G, or for 256 of 2 MiB beside them by \
             dpdk.hugePages2M, which hold the tables at their usual size"
        ));
    }
    let asked = large.saturating_mul(1024).saturating_add(small.saturating_mul(2));
    (asked <= memory).then(|| {
        format!(
            "{asked} MiB of huge pages are asked for, and the DPDK process takes {memory} MiB of each NUMA node and its \
             tables besides: ask for more by dpdk.hugePages1G or dpdk.hugePages2M, or for less by the variable {MEMORY}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(
        core_mask: Option<&str>,
        (large, small): (u64, u64),
        variables: &[(&str, &str)],
    ) -> Option<String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        };
        obstacle(core_mask, Pages { large, small }, variable)
    }

    #[test]
    fn what_cannot_start_is_said_with_what_to_do() {
        for (cores, pages, variables, expected) in [
            (Some("1-2"), (0, 0), &[][..], "none are asked for"),
            (Some("1-2"), (2, 0), &[], "ask for 3 or more"),
            (Some("1-2"), (3, 0), &[("DPDK_MEM_PER_SOCKET", "1025")], "ask for 4 or more"),
            (Some("1-2"), (4, 0), &[("AGENT_MODE", " dpdk")], "AGENT_MODE is \" dpdk\""),
            (Some("1-2"), (0, 512), &[], "1024 MiB of huge pages are asked for"),
            (Some("1-2"), (0, 1024), &[("DPDK_MEM_PER_SOCKET", "2048")], "DPDK_MEM_PER_SOCKET"),
            (None, (4, 0), &[], "no cores that forward are named"),
            (Some(""), (4, 0), &[], "no cores that forward are named"),
            (Some("3"), (4, 0), &[], "are 3-3"),
            (Some("1-2"), (4, 0), &[("CPU_CORE_MASK", "0x4")], "are 0x4"),
            (Some("1-2"), (4, 0), &[("AGENT_MODE", "kernel")], "AGENT_MODE is \"kernel\""),
        ] {
            let message = said(cores, pages, variables).unwrap();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn what_can_start_passes() {
        for (cores, pages, variables) in [
            (Some("0x6"), (3, 0), &[("AGENT_MODE", "dpdk")][..]),
            (Some("0x6"), (1, 1), &[]),
            (Some("0x6"), (0, 256), &[("DPDK_MEM_PER_SOCKET", "256")]),
            (Some("0x6"), (0, 256), &[("DPDK_MEM_PER_SOCKET", "of old")]),
            (None, (3, 0), &[("CPU_CORE_MASK", "4,8")]),
        ] {
            assert_eq!(said(cores, pages, variables), None);
        }
    }

    #[test]
    fn cores_are_counted_as_the_image_reads_them() {
        for (text, count) in [
            ("0x01", Some(1)),
            ("0xfF", Some(8)),
            // A mask, too.
            ("3", Some(2)),
            ("1,2-3", Some(3)),
            ("1-3,2", Some(3)),
            ("3-1", Some(0)),
            ("1-7:2", None),
            ("all", None),
        ] {
            assert_eq!(cores(text), count, "{text}");
        }
    }

    #[test]
    fn one_number_is_one_core_to_the_image_too() {
        for (mask, expected) in [("12", "12-12"), ("0x12", "0x12"), ("1,2-3", "1,2-3"), ("", "")] {
            assert_eq!(for_image(mask), expected);
        }
    }
}
