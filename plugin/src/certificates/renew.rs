//! Which certificates are renewed, and what that means for what runs (pure). The operator does it: it is asked by an
//! annotation.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use opensdn_deploy::names::operator::{RENEW, RENEWED_IN_TURNS};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{World, is_ca_secret, owner};
use crate::exit::{Exit, Failure};
use crate::output::Answer;
use crate::snapshot::{annotation, name, namespace};

/// Asks for a new CA; of `opensdn-pki`, which the plugin does not need otherwise.
const ROTATE: &str = "opensdn.io/rotate-ca";
/// Between two addresses, at least.
const PAUSE_MINUTES: usize = 3;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All but CAs.
    All,
    /// What has this name: a Secret, or what uses it.
    Named(String),
}

/// What `certs renew` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificatesRenewal {
    /// Whether nothing was asked for.
    pub(crate) dry_run: bool,
    /// By namespace and name.
    pub(crate) secrets: Vec<Renewal>,
}

impl Answer for CertificatesRenewal {
    const KIND: &'static str = "CertificatesRenewal";
}

/// A Secret whose certificates are renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Renewal {
    /// The namespace of the Secret.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) secret: String,
    /// What uses it.
    pub(crate) used_by: String,
    /// How many addresses get new ones, one after the other; none for a CA.
    pub(crate) addresses: usize,
    /// What happens to what runs.
    pub(crate) effect: String,
    /// Whether that was asked for before, and has not ended.
    pub(crate) is_asked: bool,
    #[serde(skip)]
    annotation: &'static str,
}

impl Renewal {
    /// What is written into the Secret.
    pub(crate) fn patch(&self, now: Timestamp) -> Value {
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        json!({"metadata": {"annotations": {(self.annotation): now}}})
    }
}

/// What is renewed.
///
/// # Errors
/// Nothing has that name.
pub(crate) fn plan(world: &World, wanted: &Wanted) -> Result<Vec<Renewal>, Failure> {
    let fits = |secret: &&Value| match wanted {
        Wanted::All => !is_ca_secret(secret),
        Wanted::Named(wanted) => {
            let owner = owner(secret);
            let owned_by = owner.split_once(' ').map_or("", |(_, name)| name);
            let whole = format!("{}/{}", namespace(secret), name(secret));
            [name(secret), owned_by, &whole].contains(&wanted.as_str())
        }
    };
    let of_all: Vec<Renewal> = world.secrets.iter().filter_map(of_secret).collect();
    let mut renewals: Vec<Renewal> =
        world.secrets.iter().filter(fits).filter_map(of_secret).collect();
    say_effects(&mut renewals, &of_all);
    renewals.sort_by(|one, other| {
        (&one.namespace, &one.secret).cmp(&(&other.namespace, &other.secret))
    });
    if renewals.is_empty() {
        let message = match wanted {
            Wanted::All => "there are no certificates of OpenSDN in this cluster".to_owned(),
            Wanted::Named(name) => format!("no certificate of OpenSDN is called {name}"),
        };
        let hint = "see which there are: kubectl opensdn certs status";
        return Err(Failure::new(Exit::Usage, "no-certificate", message, hint));
    }
    Ok(renewals)
}

fn of_secret(secret: &Value) -> Option<Renewal> {
    let data = secret.pointer("/data").and_then(Value::as_object)?;
    let is_ca = is_ca_secret(secret);
    let addresses: BTreeSet<&str> = data
        .keys()
        .filter_map(|key| key.strip_suffix(".crt")?.split_once('-').map(|(_, address)| address))
        .collect();
    if !is_ca && addresses.is_empty() {
        return None;
    }
    let used_by = if is_ca { "CA".to_owned() } else { owner(secret) };
    let annotation = if is_ca { ROTATE } else { RENEW };
    let is_asked = is_ca && self::annotation(secret, ROTATE).is_some();
    let addresses = if is_ca { 0 } else { addresses.len() };
    let (namespace, secret) = (namespace(secret).to_owned(), name(secret).to_owned());
    let effect = String::new();
    Some(Renewal { namespace, secret, used_by, addresses, effect, is_asked, annotation })
}

/// Of a component on hundreds of nodes several Secrets are renewed together, and each turn is of all its addresses.
fn say_effects(renewals: &mut [Renewal], of_all: &[Renewal]) {
    let count = |all: &[Renewal], of: &Renewal| -> usize {
        let is_same =
            |one: &&Renewal| (&one.namespace, &one.used_by) == (&of.namespace, &of.used_by);
        all.iter().filter(is_same).map(|one| one.addresses).sum()
    };
    let asked: Vec<usize> = renewals.iter().map(|one| count(renewals, one)).collect();
    for (one, asked) in renewals.iter_mut().zip(asked) {
        let at_once = (count(of_all, one) / RENEWED_IN_TURNS).max(1);
        one.effect = effect(one.annotation == ROTATE, &one.used_by, asked, at_once);
    }
}

fn effect(is_ca: bool, used_by: &str, addresses: usize, at_once: usize) -> String {
    if is_ca {
        return "the new CA is announced, used when all pods trust it, and every certificate of the one before is then \
                issued again, one address of each component at a time, of more than 40 one in 20"
            .to_owned();
    }
    let kind = used_by.split(' ').next().unwrap_or_default();
    let what = match kind {
        "Zookeeper" | "Cassandra" => "each member starts again",
        "Redis" => "stunnel reads them again; nothing starts again",
        _ => "daemons that read certificates only once start again within their pods",
    };
    let minutes = addresses.div_ceil(at_once).saturating_sub(1) * PAUSE_MINUTES;
    match (addresses, at_once) {
        (1, _) => what.to_owned(),
        (_, 1) => format!("{what}, one at a time when all are ready: {minutes} minutes at least"),
        _ => format!(
            "{what}, {at_once} of {addresses} at a time when all are ready: {minutes} minutes at least"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, owner: Option<(&str, &str)>, keys: &[&str]) -> Value {
        let data: serde_json::Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), json!(""))).collect();
        let owners: Vec<Value> =
            owner.iter().map(|(kind, name)| json!({"kind": kind, "name": name})).collect();
        json!({"metadata": {"name": name, "namespace": "tf", "ownerReferences": owners}, "data": data})
    }

    fn world() -> World {
        let secrets = vec![
            secret("opensdn-ca", None, &["ca.crt", "previous.crt"]),
            secret(
                "redis1-secret-certificates",
                Some(("Redis", "redis1")),
                &["server-10.0.0.1.crt", "client-10.0.0.1.crt", "server-10.0.0.2.crt"],
            ),
            secret(
                "zookeeper1-secret-certificates",
                Some(("Zookeeper", "zookeeper1")),
                &["server-10.0.0.1.crt"],
            ),
            secret("redis1-password", Some(("Redis", "redis1")), &[]),
        ];
        World { secrets, ..World::default() }
    }

    fn names(wanted: &Wanted) -> Vec<String> {
        plan(&world(), wanted).unwrap().into_iter().map(|one| one.secret).collect()
    }

    #[test]
    fn all_are_all_but_cas_and_a_name_is_that_of_the_secret_or_of_what_uses_it() {
        let both = ["redis1-secret-certificates", "zookeeper1-secret-certificates"];
        assert_eq!(names(&Wanted::All), both);
        for name in ["redis1", "redis1-secret-certificates", "tf/redis1-secret-certificates"] {
            assert_eq!(names(&Wanted::Named(name.to_owned())), both[..1]);
        }
        assert_eq!(names(&Wanted::Named("opensdn-ca".to_owned())), ["opensdn-ca"]);
        assert!(plan(&world(), &Wanted::Named("redis".to_owned())).is_err());
    }

    #[test]
    fn it_is_said_what_starts_again_and_how_long_it_takes() {
        let plan = |name: &str| plan(&world(), &Wanted::Named(name.to_owned())).unwrap().remove(0);
        let redis = plan("redis1");
        assert_eq!(redis.addresses, 2);
        assert!(
            redis.effect.contains("nothing starts again") && redis.effect.contains("3 minutes"),
            "{}",
            redis.effect
        );
        assert_eq!(plan("zookeeper1").effect, "each member starts again");
        let patch = |name: &str| {
            self::plan(&world(), &Wanted::Named(name.to_owned()))
                .unwrap()
                .remove(0)
                .patch("2026-11-25T00:00:00Z".parse().unwrap())
        };
        assert_eq!(
            patch("opensdn-ca"),
            json!({"metadata": {"annotations": {(ROTATE): "2026-11-25T00:00:00Z"}}})
        );
        assert_eq!(
            patch("redis1"),
            json!({"metadata": {"annotations": {(RENEW): "2026-11-25T00:00:00Z"}}})
        );
    }

    #[test]
    fn of_hundreds_of_addresses_several_are_renewed_at_a_time_whatever_secrets_they_are_in() {
        let owner = Some(("Vrouter", "vrouter1"));
        let secret = |name: &str, addresses: std::ops::Range<usize>| {
            let keys: Vec<String> =
                addresses.map(|number| format!("server-192.0.2.{number}.crt")).collect();
            secret(name, owner, &keys.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let (first, second) = ("vrouter1-secret-certificates", "vrouter1-secret-certificates-2");
        let secrets = vec![secret(first, 0..170), secret(second, 170..200)];
        let world = World { secrets, ..world() };
        let effects = |name: &str| -> Vec<String> {
            let plan = plan(&world, &Wanted::Named(name.to_owned())).unwrap();
            plan.into_iter().map(|one| one.effect).collect()
        };
        let both = effects("vrouter1");
        assert!(both.len() == 2 && both[0] == both[1], "{both:?}");
        assert!(both[0].contains("10 of 200 at a time when all are ready: 57 minutes"), "{both:?}");
        let one = effects(second);
        assert!(one[0].contains("10 of 30 at a time when all are ready: 6 minutes"), "{one:?}");
    }
}
