//! Who may do what, by `aaa_mode`: the filter before everything (`vnc_auth_keystone.py`), the rules by path
//! (`vnc_rbac.py`), the permissions of an object (`vnc_perms.py`).

use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::keystone::{self, Token, Tokens};
use super::python;
use super::request::Asked;
use super::schema::Kind;
use super::store::{Object, Refusal};

/// Who is let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each caller; the default of the containers.
    #[default]
    NoAuth,
    /// Each token with a role that is literally `admin`; the default of the program.
    CloudAdmin,
    /// Each token, for what rules and permissions allow.
    Rbac,
}

impl Mode {
    /// As `/aaa-mode` says it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NoAuth => "no-auth",
            Self::CloudAdmin => "cloud-admin",
            Self::Rbac => "rbac",
        }
    }
}

/// The names of the roles that mean something.
#[derive(Clone, Debug)]
pub struct Roles {
    /// Who may do everything in rbac.
    pub cloud_admin: String,
    /// Who may read everything in rbac.
    pub global_read_only: Option<String>,
    /// Kinds of which everyone may read everything in rbac, by a rule that the cloud has.
    pub readable: Vec<String>,
}

impl Default for Roles {
    fn default() -> Self {
        Self { cloud_admin: "admin".to_owned(), global_read_only: None, readable: Vec::new() }
    }
}

/// Who asks.
#[derive(Clone)]
pub(super) enum Caller {
    /// It does not matter.
    Unchecked,
    Known(Box<Token>),
}

pub(super) struct Access<'a> {
    pub(super) mode: Mode,
    pub(super) roles: &'a Roles,
    pub(super) tokens: &'a Tokens,
    /// Where tokens are to be had.
    pub(super) keystone: &'a str,
}

/// What a caller may do with an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Read,
    Everything,
}

impl Access<'_> {
    /// The filter before everything else.
    ///
    /// # Errors
    /// 401 without a valid token, the broken 403 in cloud-admin without the role.
    pub(super) fn let_in(&self, asked: &Asked) -> Result<Caller, Box<Answer>> {
        if self.mode == Mode::NoAuth {
            return Ok(Caller::Unchecked);
        }
        let id = asked.header("x-auth-token").unwrap_or_default();
        let token = self.tokens.valid(id).ok_or_else(|| Box::new(self.unauthorized()))?;
        if self.mode == Mode::CloudAdmin && !has("admin", &token.roles) {
            return Err(Box::new(answer::broken_403()));
        }
        Ok(Caller::Known(Box::new(token.clone())))
    }

    fn unauthorized(&self) -> Answer {
        let message = "The request you have made requires authentication.";
        let mut answer = keystone::failure(StatusCode::UNAUTHORIZED, message);
        if let Ok(value) = HeaderValue::from_str(&format!("Keystone uri=\"{}\"", self.keystone)) {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
        answer
    }

    /// The rules by path, which are those of a cloud where none was added.
    ///
    /// # Errors
    /// 403 that names the user, its roles, the operation and the type.
    pub(super) fn by_rules(&self, caller: &Caller, asked: &Asked) -> Result<(), Refusal> {
        let Caller::Known(token) = caller else { return Ok(()) };
        if self.mode != Mode::Rbac || token.roles.contains(&self.roles.cloud_admin) {
            return Ok(());
        }
        if token.roles.is_empty() {
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "roles empty!!"));
        }
        let is_read = asked.method == Method::GET;
        let first = asked.path.split('/').nth(1).unwrap_or_default();
        let kind = Kind::of_collection(first).map_or(first, |kind| kind.name);
        let is_open = ["fqname-to-id", "id-to-fqname"].contains(&kind);
        let is_readable = kind == "watch" || self.is_readable(kind) || self.is_reader(token);
        if is_open || (is_read && is_readable) {
            return Ok(());
        }
        let operation = match asked.method {
            Method::GET => "R",
            Method::PUT => "U",
            Method::DELETE => "D",
            _ => "C",
        };
        let (user, roles) = (&token.user, python::list(&token.roles));
        let project = token.project.as_ref().map_or("None", |project| &project.name);
        let text =
            format!("Permission Denied for {user} as {roles} to {operation} {kind} in {project}");
        Err(Refusal::new(StatusCode::FORBIDDEN, text))
    }

    fn is_readable(&self, kind: &str) -> bool {
        self.roles.readable.iter().any(|one| one == kind)
    }

    fn is_reader(&self, token: &Token) -> bool {
        self.roles.global_read_only.as_ref().is_some_and(|role| has(role, &token.roles))
    }

    fn is_allowed(&self, token: &Token, object: Option<&Object>, wish: Wish) -> bool {
        let is_owner = || {
            let project = token.project.as_ref();
            object.is_none_or(|object| project.is_some_and(|it| it.id == object.owner))
        };
        self.mode != Mode::Rbac
            || has(&self.roles.cloud_admin, &token.roles)
            || (wish == Wish::Read && self.is_reader(token))
            || (wish == Wish::Read && object.is_some_and(|one| self.is_readable(one.kind.name)))
            || is_owner()
    }

    /// Whether the caller may read the object.
    ///
    /// # Errors
    /// 403 that names its owner.
    pub(super) fn may_read(&self, caller: &Caller, object: &Object) -> Result<(), Refusal> {
        let Caller::Known(token) = caller else { return Ok(()) };
        if self.is_allowed(token, Some(object), Wish::Read) {
            return Ok(());
        }
        let project = token.project.as_ref().map_or("None", |project| &project.name);
        let text = format!(
            "Permission Denied for {} to read operation in domain 'default-domain' and project \
             '{project}' RBAC: {} doesn't have read permission in project '{}'",
            python::list(&token.roles),
            token.user,
            object.owner
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, text))
    }

    /// `/obj-perms`: what the token is and what it may do with an object. The answer has the token in it.
    pub(super) fn permissions(&self, caller: &Caller, object: Option<Option<&Object>>) -> Value {
        let Caller::Known(token) = caller else {
            return json!({"token_info": null, "is_cloud_admin_role": false,
                "is_global_read_only_role": false, "permissions": "RWX"});
        };
        let mut shown = json!({
            "token_info": token.info,
            "is_cloud_admin_role": has(&self.roles.cloud_admin, &token.roles),
            "is_global_read_only_role": self.is_reader(token),
        });
        if let (Some(object), Value::Object(fields)) = (object, &mut shown) {
            let all = self.is_allowed(token, object, Wish::Everything);
            fields.insert("permissions".to_owned(), json!(if all { "RWX" } else { "" }));
        }
        shown
    }
}

/// Whatever the case of the letters.
fn has(role: &str, roles: &[String]) -> bool {
    roles.iter().any(|one| one.eq_ignore_ascii_case(role))
}
