//! Why something was not done in a cloud, as it is said of an object: one of the states of drift where it is one.

use opensdn_config_api::apply as rows;
use opensdn_config_api::client::{self, Refusal};
use opensdn_nested_cloud::Error;
use opensdn_runtime::error_chain;

use super::condition::Said;

/// What is said of it.
pub(super) fn said(error: &Error) -> Said {
    let message = error_chain(error);
    let with = |code: &str| format!("{code}: {message}");
    match error.of_api() {
        Some(client::Error::NoVrouterConfig) => Said::waits("ObjectMissing", with("OSDN3096")),
        Some(error) if error.is_passing() => Said::waits("Unreachable", with("OSDN3098")),
        Some(client::Error::Login(_)) => Said::stalled("Unauthorized", with("OSDN3097")),
        Some(error) => match error.refusal() {
            Some(Refusal::Unauthorized { .. } | Refusal::Forbidden(_)) => {
                Said::stalled("Unauthorized", with("OSDN3097"))
            }
            _ => Said::waits("Failed", message),
        },
        None => match error {
            Error::Rows(rows::Error::Conflicts(_)) => Said::stalled("Taken", with("OSDN3095")),
            Error::Rows(rows::Error::Fought(_)) => Said::waits("Fought", message),
            Error::Lock(_) | Error::Rows(rows::Error::Lock(_)) => Said::waits("Locked", message),
            _ => Said::waits("Failed", message),
        },
    }
}

/// Whether another writer was at work. Writes that the Config API refuses are no fight.
pub(super) fn is_fight(error: &Error) -> bool {
    matches!(error, Error::Rows(rows::Error::Fought(fought)) if fought.source.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cloud_answers_is_a_state_with_its_code() {
        let refused = |refusal| {
            Error::Api(client::Error::Refused {
                address: "http://192.0.2.1:8082".to_owned(),
                what: "GET /".to_owned(),
                refusal,
            })
        };
        let is = |error: Error, said_is: Said| assert_eq!(said(&error), said_is, "{error:?}");
        let text = |error: &Error| error_chain(error);
        let forbidden = refused(Refusal::Forbidden(String::new()));
        let message = format!("OSDN3097: {}", text(&forbidden));
        assert!(message.contains("role admin"), "{message}");
        is(forbidden, Said::stalled("Unauthorized", message));
        let busy = refused(Refusal::TimedOut(http_status(504)));
        let message = format!("OSDN3098: {}", text(&busy));
        is(busy, Said::waits("Unreachable", message));
        let missing = Error::Api(client::Error::NoVrouterConfig);
        let message = format!("OSDN3096: {}", text(&missing));
        is(missing, Said::waits("ObjectMissing", message));
    }

    #[test]
    fn writes_that_are_refused_are_no_fight_with_another_writer() {
        let fought = |source: Option<client::Error>| {
            let fought = rows::Fought {
                attempts: 3,
                changes: Vec::new(),
                vanished: Vec::new(),
                backup: None,
                source,
            };
            Error::Rows(rows::Error::Fought(Box::new(fought)))
        };
        let refused = client::Error::Refused {
            address: "http://192.0.2.1:8082".to_owned(),
            what: "PUT /".to_owned(),
            refusal: Refusal::Unavailable(http_status(503)),
        };
        assert!(is_fight(&fought(None)));
        let refused = fought(Some(refused));
        assert!(!is_fight(&refused));
        assert_eq!(
            (said(&refused).reason(), said(&fought(None)).reason()),
            ("Unreachable", "Fought")
        );
    }

    fn http_status(code: u16) -> http::StatusCode {
        http::StatusCode::from_u16(code).unwrap()
    }
}
