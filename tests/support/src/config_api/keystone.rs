//! Keystone, as far as it gives tokens: by name and password, for a project, over v3 and v2. Deliberately not here: what
//! a token allows (`access`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::answer::{self, Answer};
use super::request::Asked;
use super::store::new_uuid;

/// The one domain, by its id; its name differs in case alone.
const DOMAIN: &str = "default";

/// Who may get a token.
#[derive(Clone)]
pub struct User {
    /// `admin`.
    pub name: String,
    /// What it proves itself with.
    pub password: String,
    /// The one project in which it has roles.
    pub project: String,
    /// Its roles there.
    pub roles: Vec<String>,
}

impl User {
    /// With roles in the project `admin`.
    #[must_use]
    pub fn new(name: &str, password: &str, roles: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            password: password.to_owned(),
            project: "admin".to_owned(),
            roles: roles.iter().map(ToString::to_string).collect(),
        }
    }
}

impl fmt::Debug for User {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("User").field("name", &self.name).field("roles", &self.roles).finish()
    }
}

#[derive(Clone)]
pub(super) struct Token {
    pub(super) user: String,
    /// None, where it was not asked for one.
    pub(super) project: Option<Project>,
    pub(super) roles: Vec<String>,
    /// What Keystone says of it, itself included.
    pub(super) info: Value,
    until: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct Project {
    pub(super) name: String,
    /// Without dashes.
    pub(super) id: String,
}

#[derive(Default)]
pub(super) struct Tokens {
    given: BTreeMap<String, Token>,
}

impl Tokens {
    /// A token that is valid now.
    pub(super) fn valid(&self, id: &str) -> Option<&Token> {
        self.given.get(id).filter(|token| token.until > Instant::now())
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.given.keys().filter(|id| self.valid(id).is_some()).cloned().collect()
    }

    /// From now on none of those is valid.
    pub(super) fn expire(&mut self) {
        self.given.clear();
    }
}

/// What is known of users and their projects.
pub(super) struct Directory<'d> {
    pub(super) users: &'d [User],
    pub(super) life: Duration,
    /// The id of a project by its name.
    pub(super) project_id: &'d dyn Fn(&str) -> String,
}

enum Version {
    V2,
    V3,
}

pub(super) fn respond(asked: &Asked, directory: &Directory<'_>, tokens: &mut Tokens) -> Answer {
    match (&asked.method, asked.path.trim_end_matches('/')) {
        (&Method::GET, "/v3") => versions("v3.14", "/v3/", asked),
        (&Method::GET, "/v2.0") => versions("v2.0", "/v2.0/", asked),
        (&Method::POST, "/v3/auth/tokens") => token(asked, Version::V3, directory, tokens),
        (&Method::POST, "/v2.0/tokens") => token(asked, Version::V2, directory, tokens),
        _ => failure(StatusCode::NOT_FOUND, "The resource could not be found."),
    }
}

fn versions(id: &str, path: &str, asked: &Asked) -> Answer {
    let links = json!([{"rel": "self", "href": format!("{}{path}", asked.base)}]);
    answer::json(&json!({"version": {"id": id, "status": "stable", "links": links}}))
}

pub(super) fn failure(status: StatusCode, message: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or_default();
    let error = json!({"code": status.as_u16(), "message": message, "title": title});
    answer::json_with(status, &json!({ "error": error }))
}

/// What a client says of itself.
struct Claim<'c> {
    name: &'c str,
    password: &'c str,
    project: Option<&'c str>,
}

fn claim(body: &Value, version: &Version) -> Option<(String, String, Option<String>)> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let is_domain = |pointer: &str| {
        let domain = body.pointer(pointer);
        domain.is_none_or(|domain| {
            let named = domain.get("name").or_else(|| domain.get("id")).and_then(Value::as_str);
            named.is_some_and(|name| name.eq_ignore_ascii_case(DOMAIN))
        })
    };
    match version {
        Version::V2 => {
            let of = "/auth/passwordCredentials";
            let (name, password) = (format!("{of}/username"), format!("{of}/password"));
            Some((text(&name)?, text(&password)?, text("/auth/tenantName")))
        }
        Version::V3 => {
            let of = "/auth/identity/password/user";
            let domains = [format!("{of}/domain"), "/auth/scope/project/domain".to_owned()];
            if !domains.iter().all(|domain| is_domain(domain)) {
                return None;
            }
            let (name, password) = (format!("{of}/name"), format!("{of}/password"));
            Some((text(&name)?, text(&password)?, text("/auth/scope/project/name")))
        }
    }
}

fn token(
    asked: &Asked,
    version: Version,
    directory: &Directory<'_>,
    tokens: &mut Tokens,
) -> Answer {
    let denied = || {
        let message = "The request you have made requires authentication.";
        failure(StatusCode::UNAUTHORIZED, message)
    };
    let Ok(body) = serde_json::from_slice::<Value>(&asked.body) else {
        return failure(StatusCode::BAD_REQUEST, "Expecting to find valid JSON.");
    };
    let Some((name, password, project)) = claim(&body, &version) else { return denied() };
    let claim = Claim { name: &name, password: &password, project: project.as_deref() };
    let is_right = |user: &&User| {
        let in_project = claim.project.is_none_or(|project| project == user.project);
        user.name == claim.name && user.password == claim.password && in_project
    };
    let Some(user) = directory.users.iter().find(is_right) else { return denied() };
    give(user, &claim, &version, directory, tokens)
}

fn give(
    user: &User,
    claim: &Claim<'_>,
    version: &Version,
    directory: &Directory<'_>,
    tokens: &mut Tokens,
) -> Answer {
    let id = new_uuid().replace('-', "");
    let project = claim
        .project
        .map(|name| Project { name: name.to_owned(), id: (directory.project_id)(name) });
    let roles = if project.is_some() { user.roles.clone() } else { Vec::new() };
    let info = info(&id, user, project.as_ref(), &roles, version, directory.life);
    let until = Instant::now() + directory.life;
    let mut answer = match version {
        Version::V2 => answer::json(&info),
        Version::V3 => answer::json_with(StatusCode::CREATED, &info),
    };
    if let (Version::V3, Ok(value)) = (version, HeaderValue::from_str(&id)) {
        answer.headers_mut().insert("x-subject-token", value);
    }
    tokens.given.insert(id, Token { user: user.name.clone(), project, roles, info, until });
    answer
}

fn info(
    id: &str,
    user: &User,
    project: Option<&Project>,
    roles: &[String],
    version: &Version,
    life: Duration,
) -> Value {
    let now = OffsetDateTime::now_utc();
    let stamp = |time: OffsetDateTime| time.format(&Rfc3339).unwrap_or_default();
    let (issued, expires) = (stamp(now), stamp(now + life));
    let roles: Vec<Value> = roles.iter().map(|role| json!({"id": role, "name": role})).collect();
    let domain = json!({"id": DOMAIN, "name": "Default"});
    match version {
        Version::V3 => json!({"token": {
            "id": id, "methods": ["password"], "issued_at": issued, "expires_at": expires,
            "user": {"id": user.name, "name": user.name, "domain": domain},
            "project": project.map(|it| json!({"id": it.id, "name": it.name, "domain": domain})),
            "roles": roles, "catalog": [],
        }}),
        Version::V2 => json!({"access": {
            "token": {"id": id, "issued_at": issued, "expires": expires,
                "tenant": project.map(|it| json!({"id": it.id, "name": it.name}))},
            "user": {"id": user.name, "name": user.name, "username": user.name, "roles": roles},
            "serviceCatalog": [],
        }}),
    }
}
