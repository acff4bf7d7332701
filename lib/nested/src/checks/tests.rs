//! Each check once where it fires, and once where it does not: the worked example on a cloud in order has none but those
//! that are always said.

use crate::catalogue::Code;
use crate::fixture::{empty_cloud, input, of, snat_input};
use crate::input::Input;
use crate::live::Live;
use crate::roles::Profile;

mod addresses;
mod around;
mod rows;

/// The messages of a code.
fn found(input: &Input, live: &Live, code: Code) -> Vec<String> {
    let plan = crate::plan(input, live);
    of(&plan, code)
        .iter()
        .map(|finding| format!("{}: {}", finding.about, finding.message))
        .collect()
}

/// That a code is found after a change, and not before.
fn fires(
    code: Code,
    (input, live): (Input, Live),
    change: impl FnOnce(&mut Input, &mut Live),
) -> String {
    assert_eq!(found(&input, &live, code), Vec::<String>::new(), "before the change");
    let (mut input, mut live) = (input, live);
    change(&mut input, &mut live);
    let found = found(&input, &live, code);
    assert!(!found.is_empty(), "{code} is not found");
    found.join("\n")
}

fn option_1() -> (Input, Live) {
    let mut live = empty_cloud();
    let crate::Fact::Known(Some(network)) = &mut live.network else { panic!() };
    network.fabric_snat = Some(true);
    (snat_input(), live)
}

fn option_2() -> (Input, Live) {
    (input(Profile::Doc), empty_cloud())
}

fn codes(input: &Input, live: &Live) -> Vec<&'static str> {
    crate::plan(input, live).findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn only_what_is_always_so_is_said_of_a_cloud_in_order() {
    let (input, live) = option_1();
    assert_eq!(codes(&input, &live), ["OSDN3054", "OSDN3055"]);
    let (input, live) = option_2();
    assert_eq!(codes(&input, &live), ["OSDN3039", "OSDN3054"]);
    assert_eq!(
        codes(&crate::fixture::input(Profile::Cql), &live),
        ["OSDN3024", "OSDN3039", "OSDN3054"]
    );
}
