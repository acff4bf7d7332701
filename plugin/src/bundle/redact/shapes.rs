//! Secrets that have no name, and are known by what they look like.

use super::REDACTED;
use super::quotes::near;

/// Beginnings of tokens of well-known services, and how many letters come behind them at least.
const PREFIXES: [(&str, usize); 15] = [
    ("AKIA", 6),
    ("ASIA", 6),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("ghu_", 16),
    ("github_pat_", 16),
    ("glpat-", 12),
    ("xoxb-", 12),
    ("xoxp-", 12),
    ("hvs.", 12),
    ("dckr_pat_", 12),
    ("AIza", 30),
    ("npm_", 30),
    ("AGE-SECRET-KEY-1", 20),
];
/// Addresses of hooks: who has the rest of one may post there.
const HOOKS: [&str; 3] =
    ["hooks.slack.com/services/", "discord.com/api/webhooks/", ".webhook.office.com/"];
/// Users behind whose names a colon has a password, where the whole line is no more than that.
const USERS: [&str; 6] = ["user", "admin", "root", "guest", "rabbitmq", "rabbit"];

/// The text without them.
pub(super) fn without(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let hidden = whole(content.trim());
        if let Some(kept) = hidden {
            let indent = content.len() - content.trim_start().len();
            clean.push_str(line.get(..indent).unwrap_or_default());
            clean.push_str(kept);
            clean.push_str(REDACTED);
            clean.push_str(line.get(content.len()..).unwrap_or_default());
        } else {
            words(line, &mut clean);
        }
    }
    clean
}

/// What stays of a line that is a login as a whole: of .pgpass, `user:password`, or a cookie of Erlang.
fn whole(line: &str) -> Option<&str> {
    if line.contains(char::is_whitespace) || line.ends_with(REDACTED) {
        return None;
    }
    if is_erlang_cookie(line) {
        return Some("");
    }
    let (user, password) = line.split_once(':')?;
    let is_login = USERS.contains(&user)
        && !password.is_empty()
        && !password.starts_with(['/', ':', '"'])
        && !password.chars().all(|letter| letter.is_ascii_digit() || letter == ':');
    if is_login {
        return line.get(..=user.len());
    }
    let fields: Vec<&str> = line.splitn(5, ':').collect();
    let [host, port, database, login, password] = fields.as_slice() else { return None };
    let is_port =
        *port == "*" || (2..=5).contains(&port.len()) && port.chars().all(|x| x.is_ascii_digit());
    let is_address = [host, port, database, login]
        .iter()
        .all(|field| field.len() <= 4 && field.chars().all(|letter| letter.is_ascii_hexdigit()));
    let is_login = is_port
        && !is_address
        && ![host, database, login, password].iter().any(|field| field.is_empty())
        && !line.contains(['"', '{', '=', ',', '[', '<']);
    is_login.then(|| line.get(..line.len() - password.len())).flatten()
}

fn is_erlang_cookie(word: &str) -> bool {
    word.len() == 20 && word.chars().all(|letter| letter.is_ascii_uppercase())
}

fn words(line: &str, clean: &mut String) {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || "_-.$/+=".contains(letter);
    let mut rest = line;
    let mut is_cookie = false;
    while let Some(start) = rest.find(is_of_word) {
        let (before, behind) = rest.split_at(start);
        let length = behind.find(|letter| !is_of_word(letter)).unwrap_or(behind.len());
        let (word, after) = behind.split_at(length);
        clean.push_str(before);
        if is_cookie && is_erlang_cookie(word) {
            clean.push_str(REDACTED);
        } else {
            clean.push_str(&of_word(word));
        }
        is_cookie = is_cookie || (word.len() < 64 && word.to_lowercase().contains("cookie"));
        rest = after;
    }
    clean.push_str(rest);
}

/// The word without the secret in it; what is before it in the word stays.
fn of_word(word: &str) -> String {
    let behind_hook = |hook: &str| word.find(hook).map(|at| at + hook.len());
    if let Some(kept) = HOOKS.iter().find_map(|hook| behind_hook(hook))
        && kept < word.len()
    {
        return format!("{}{REDACTED}", word.get(..kept).unwrap_or_default());
    }
    let mut from = 0;
    loop {
        let rest = word.get(from..).unwrap_or_default();
        if rest.len() < 8 {
            return word.to_owned();
        }
        if is_path_token(word.get(..from).unwrap_or_default(), rest) {
            let behind = rest.find(|letter: char| !letter.is_ascii_hexdigit());
            let after = behind.and_then(|at| rest.get(at..)).unwrap_or_default();
            return format!("{}{REDACTED}{after}", word.get(..from).unwrap_or_default());
        }
        let may_be = rest.len() == 23 || rest.starts_with(['A', 'g', 'x', 'h', 'd', 'n', 'e', '$']);
        if may_be && (is_token(rest) || is_bootstrap_token(rest) || crypt(rest).is_some()) {
            let kept = from + crypt(rest).unwrap_or_default();
            return format!("{}{REDACTED}", word.get(..kept).unwrap_or_default());
        }
        // The next beginning: behind what joins words.
        let Some(next) = rest.find(['/', '=', '+']) else { return word.to_owned() };
        from += next + 1;
    }
}

/// `/validate/` and the token by which the webhook knows the API server: in its configurations, and in what the API server
/// says where the webhook does not answer.
fn is_path_token(before: &str, rest: &str) -> bool {
    let length = rest.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(rest.len());
    ["/validate/", "/mutate/"].iter().any(|path| before.ends_with(path)) && length >= 16
}

fn is_token(word: &str) -> bool {
    let is_known = PREFIXES.iter().any(|(prefix, least)| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            let is_of_token =
                |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
            let length = rest.find(|letter| !is_of_token(letter)).unwrap_or(rest.len());
            let key = rest.get(..length).unwrap_or_default();
            let is_key = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit();
            length >= *least && (!prefix.ends_with("IA") || key.chars().all(is_key))
        })
    });
    let word = near(word, 4096);
    // A JWT: the word for `{"` in base64, then a point.
    is_known
        || (word.starts_with("eyJ")
            && word.split('.').nth(1).is_some_and(|payload| payload.len() >= 4)
            && word.find('.').is_some_and(|at| at >= 8))
}

/// `abcdef.0123456789abcdef` of kubeadm.
fn is_bootstrap_token(word: &str) -> bool {
    let is_of_token =
        |text: &str| text.chars().all(|x| x.is_ascii_lowercase() || x.is_ascii_digit());
    word.len() == 23
        && word.split_once('.').is_some_and(|(id, secret)| {
            id.len() == 6
                && secret.len() == 16
                && is_of_token(id)
                && is_of_token(secret)
                && secret.chars().any(|letter| letter.is_ascii_digit())
        })
}

/// `$6$salt$hash`: how long its beginning is, that says which hash it is.
fn crypt(word: &str) -> Option<usize> {
    let inner = word.strip_prefix('$')?;
    let (kind, hash) = near(inner, 32).split_once('$')?;
    let is_kind = [
        "1", "2", "2a", "2b", "2y", "5", "6", "7", "y", "gy", "apr1", "argon2id", "argon2i", "sha1",
    ]
    .contains(&kind);
    (is_kind && hash.len() >= 6).then_some(kind.len() + 2)
}
