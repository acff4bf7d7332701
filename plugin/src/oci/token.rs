//! How a registry wants to be asked: with a login, or with a token that another address gives for one.

use http::HeaderMap;
use http_auth::ChallengeRef;

/// What a registry wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// The login with every request.
    Basic,
    /// A token of `realm`.
    Bearer { realm: String, service: Option<String> },
}

/// What the answer 401 asks for: a token where there is a choice.
pub(super) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let values = headers.get_all(http::header::WWW_AUTHENTICATE).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let all: Vec<ChallengeRef<'_>> =
        values.filter_map(|value| http_auth::parse_challenges(value).ok()).flatten().collect();
    let of = |scheme: &str| all.iter().find(|one| one.scheme.eq_ignore_ascii_case(scheme));
    let bearer = of("Bearer").and_then(|bearer| {
        let param = |name: &str| {
            let found = bearer.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        Some(Challenge::Bearer { realm: param("realm")?, service: param("service") })
    });
    bearer.or_else(|| of("Basic").map(|_| Challenge::Basic))
}

/// The address that gives a token for what is to be done with a repository.
pub(super) fn address(realm: &str, service: Option<&str>, scope: &str) -> String {
    let mut address = realm.to_owned();
    let service = service.map(|service| ("service", service));
    for (key, value) in service.into_iter().chain([("scope", scope)]) {
        address.push(if address.contains('?') { '&' } else { '?' });
        let value =
            percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        address.push_str(&format!("{key}={value}"));
    }
    address
}

/// The token of its answer.
pub(super) fn token(answer: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
    let token = ["token", "access_token"].iter().find_map(|key| answer.get(key)?.as_str());
    token.filter(|token| !token.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_where_and_as_the_registry_says() {
        let mut headers = HeaderMap::new();
        headers.append("www-authenticate", "Basic realm=\"x\"".parse().unwrap());
        assert_eq!(challenge(&headers), Some(Challenge::Basic));
        let bearer = "Bearer realm=\"https://auth.example/token?a=b\",service=\"a, b\",scope=\"repository:x:pull\"";
        headers.append("www-authenticate", bearer.parse().unwrap());
        let Some(Challenge::Bearer { realm, service }) = challenge(&headers) else { panic!() };
        let address = address(&realm, service.as_deref(), "repository:a/b:pull,push");
        assert_eq!(
            address,
            "https://auth.example/token?a=b&service=a%2C%20b&scope=repository%3Aa%2Fb%3Apull%2Cpush"
        );
        assert_eq!(token(br#"{"access_token": "t"}"#), Some("t".to_owned()));
        assert_eq!(token(br#"{"token": ""}"#), None);
    }
}
