//! What holds for every text: it never panics, it is as quick as the text is long, and a second time changes nothing.

use serde_json::json;

use super::super::{object, text};

/// Numbers that look like chance, the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }
}

/// Pieces of which every form consists.
const PIECES: [&str; 72] = [
    "password",
    "token",
    "secretName",
    "name",
    "value",
    "key",
    "data",
    "kind: Secret",
    "Authorization",
    "Bearer ",
    "Basic ",
    "Cookie",
    "auth_data",
    "--password",
    "-p",
    "mysql ",
    "curl -u ",
    "user",
    "x",
    "Abc123def",
    "<redacted>",
    "hunter2",
    "=",
    ":",
    ": ",
    " = ",
    " ",
    "\n",
    "\n  ",
    "\n- ",
    "\r\n",
    "\"",
    "'",
    "\\\"",
    "\\",
    "\\n",
    "\\\\\\\"",
    "`",
    "\"\"\"",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "$(",
    "${X}",
    "<",
    ">",
    "</",
    "://",
    "@",
    "/",
    "?",
    "&",
    ";",
    ",",
    "|",
    ">-",
    "#",
    "---\n",
    "\n---\n",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "PuTTY-User-Key-File",
    "Private-MAC: 1\n",
    "é",
    "密码",
    "\u{feff}",
    "eyJhbGciOiJIUzI1NiJ9.eyJh",
    "cGFzc3dvcmQ6IGh1bnRlcjIyMjIyCg==",
    "$6$ab$abcdefgh",
];

fn random_text(numbers: &mut Numbers) -> String {
    let length = 1 + numbers.next(24);
    (0..length).map(|_| PIECES[numbers.next(PIECES.len())]).collect()
}

#[test]
fn a_second_time_changes_nothing() {
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let mut changed = Vec::new();
    for _ in 0..if cfg!(debug_assertions) { 3_000 } else { 300_000 } {
        let given = random_text(&mut numbers);
        let once = text(&given);
        let twice = text(&once);
        if once != twice {
            changed.push((given, once, twice));
        }
    }
    changed.sort_by_key(|(given, _, _)| given.len());
    let shown: Vec<_> = changed.iter().take(8).collect();
    assert!(changed.is_empty(), "{} changed: {shown:#?}", changed.len());
}

#[test]
fn an_object_is_the_same_after_a_second_time() {
    let mut once = json!({"kind": "List", "items": [{"kind": "Secret", "data": {"a": "x"}, "metadata": {"annotations": {"x": "y"}}},
        {"args": ["--password", "x", "-pAbc123", "--token=x"], "env": [{"name": "PASSWORD", "value": "x"}],
            "text": "password: x\ntoken: y", "binaryData": {"x": "y"}, "password": 5}]});
    object(&mut once);
    let mut twice = once.clone();
    object(&mut twice);
    assert_eq!(once, twice);
}

#[test]
fn no_bytes_make_it_panic() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for _ in 0..if cfg!(debug_assertions) { 2_000 } else { 20_000 } {
        let length = numbers.next(200);
        let bytes: Vec<u8> =
            (0..length).map(|_| u8::try_from(numbers.next(256)).unwrap()).collect();
        text(&String::from_utf8_lossy(&bytes));
        // More signs and letters that matter.
        let letters: String = (0..length)
            .map(|_| char::from(b" -=:\"'\\[{}]\npasword<>/@$"[numbers.next(24)]))
            .collect();
        text(&letters);
    }
}

/// Lines without an end, each of which made something quadratic once or could: that would take longer than the runner lets a
/// test take.
#[test]
fn a_long_line_is_gone_through_in_time() {
    let size = if cfg!(debug_assertions) { 64 * 1024 } else { 10 * 1024 * 1024 };
    for piece in [
        "password=[",
        "password=\"",
        "\"password\":\"",
        "\\\"password\\\":\\\"",
        "password: {\"",
        "password ",
        "password\n",
        "a",
        "-",
        "\"",
        "\\",
        "=",
        "name: value: ",
        "value: ",
        "http://a@",
        "http://a:b/",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----\n",
        "abcd1234\n",
        "mysql -p",
        "--password ",
        "--password\n",
        "kind: Secret data: ",
        "{",
        "[",
        "{\"a\":",
        "eyJ.",
        "$6$",
        "$(",
        "token=$(",
        "<password>",
        "name\nvalue:\n",
        "password: |\n  ",
        "passwords:\n- ",
        "\n---\n",
        "a:1:",
        "cookie ",
        "secret ",
        "PuTTY-User-Key-File",
        "Authorization: ",
        "level=info msg=\"started\" key=tf/x node=worker-1 ",
    ] {
        assert!(!text(&piece.repeat(size / piece.len())).is_empty(), "{piece:?}");
    }
}
