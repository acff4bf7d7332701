//! What has to be well before a wave is done: its own services, and all others that were well when it was planned.

use opensdn_crds::upgrade::{GateCheck, ServiceHealth};
use time::OffsetDateTime;

use crate::daemons;
use crate::health::Service;

/// As many services are named in one message.
const MOST: usize = 4;

/// What the gate asks. `skipped` are services whose health does not count.
#[must_use]
pub fn checks(
    snapshot: &[ServiceHealth],
    services: &[Service],
    skipped: &[&str],
) -> Vec<GateCheck> {
    let now = |id: &str| services.iter().find(|one| one.id == id);
    let mut bad = Vec::new();
    let mut fewer = Vec::new();
    let mut compared = Vec::new();
    for before in counting(snapshot, skipped) {
        match now(&before.service) {
            // A service that is gone from the Manager is not missed.
            None => {}
            Some(service) if !service.is_ready => {
                bad.push(format!("{}: {}", service.id, short(&service.trouble())));
            }
            Some(service) => {
                let pods = service.health().pods;
                if pods < before.pods {
                    fewer.push(format!(
                        "{} has {pods} pods ready, {} before",
                        service.id, before.pods
                    ));
                }
                compared.extend(daemons::compare(before, service));
            }
        }
    }
    // A node that is lost meanwhile takes its pods along, and no one can wait for them.
    let mut checks = vec![
        check("services-ready", &bad),
        GateCheck { passed: true, ..check("pods-as-before", &fewer) },
    ];
    let names = [daemons::FUNCTIONAL, daemons::XMPP, daemons::BGP];
    checks.extend(names.map(|name| of_daemons(name, &compared)));
    checks
}

/// Where nothing is worse it says how it is.
fn of_daemons(name: &str, compared: &[daemons::Finding]) -> GateCheck {
    let texts = |is_worse: bool| -> Vec<String> {
        let of_name = compared.iter().filter(|one| one.check == name && one.is_worse == is_worse);
        of_name.map(|one| one.text.clone()).collect()
    };
    let worse = texts(true);
    match worse.is_empty() {
        true => GateCheck { passed: true, ..check(name, &texts(false)) },
        false => check(name, &worse),
    }
}

/// The first service whose daemons have not been asked since then, where that is to be known.
pub(crate) fn unheard<'a>(
    snapshot: &'a [ServiceHealth],
    services: &[Service],
    skipped: &'a [&str],
    since: OffsetDateTime,
) -> Option<&'a str> {
    let is_unheard = |before: &&ServiceHealth| {
        let now = services.iter().find(|one| one.id == before.service);
        now.is_some_and(|now| daemons::are_unheard(before, now, since))
    };
    counting(snapshot, skipped).find(is_unheard).map(|one| one.service.as_str())
}

/// What counts: services that were well when it was planned, and that no user left out.
pub(crate) fn counting<'a>(
    snapshot: &'a [ServiceHealth],
    skipped: &'a [&str],
) -> impl Iterator<Item = &'a ServiceHealth> {
    snapshot.iter().filter(|one| one.ready && !skipped.contains(&one.service.as_str()))
}

/// One that is passed where nothing is wrong, and else names the first of what is.
pub(crate) fn check(name: &str, wrong: &[String]) -> GateCheck {
    let more = wrong.len().saturating_sub(MOST);
    let mut text = wrong.iter().take(MOST).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    GateCheck {
        name: name.to_owned(),
        passed: wrong.is_empty(),
        message: (!wrong.is_empty()).then_some(text),
    }
}

/// Texts of others stay short.
pub(crate) fn short(text: &str) -> String {
    const LONGEST: usize = 300;
    text.chars().take(LONGEST).collect()
}

/// What of the gate is shut, in words.
#[must_use]
pub fn shut(checks: &[GateCheck]) -> Option<String> {
    let shut = checks.iter().filter(|one| !one.passed);
    let texts: Vec<_> = shut
        .map(|one| format!("{} ({})", one.message.as_deref().unwrap_or_default(), one.name))
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Pod;

    fn service(id: &str, is_ready: bool, pods: usize) -> Service {
        let pod = |number| Pod { name: format!("{number}"), is_ready: true, ..Pod::default() };
        Service {
            id: id.to_owned(),
            is_ready,
            message: "1 of 3 pods ready".to_owned(),
            pods: (0..pods).map(pod).collect(),
            ..Service::default()
        }
    }

    #[test]
    fn what_was_bad_before_is_not_blamed_on_the_upgrade() {
        let before = [service("Webui/a", false, 0), service("Config/a", true, 3)];
        let snapshot: Vec<_> = before.iter().map(Service::health).collect();
        assert_eq!(shut(&checks(&snapshot, &before, &[])), None);
        let after = [service("Webui/a", false, 0), service("Config/a", false, 2)];
        let found = shut(&checks(&snapshot, &after, &[])).unwrap();
        assert_eq!(found, "Config/a: 1 of 3 pods ready (services-ready)");
        assert_eq!(shut(&checks(&snapshot, &after, &["Config/a"])), None, "left out by a user");
        let fewer = [service("Config/a", true, 2)];
        let found = checks(&snapshot, &fewer, &[]);
        assert_eq!(shut(&found), None, "with a lost node it may be so");
        assert_eq!(found[1].message.as_deref(), Some("Config/a has 2 pods ready, 3 before"));
        assert_eq!(shut(&checks(&snapshot, &[], &[])), None, "what is gone is not missed");
    }
}
