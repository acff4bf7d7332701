//! What a scalar means. Kubernetes reads YAML by go-yaml 2, which follows YAML 1.1: `yes` and `off`
//! are booleans, `0644` is octal, `1_000` a number. What is read here is what the API server gets,
//! whole numbers for `1.0` and `1e3` included, since the value goes to it as JSON.

use serde_json::{Number, Value};

/// What a scalar becomes, or why it cannot.
pub(crate) type Resolved = Result<Value, String>;

/// A scalar without quotes.
pub(crate) fn plain(text: &str) -> Resolved {
    if let Some(value) = word(text) {
        return Ok(value);
    }
    match text.as_bytes().first() {
        Some(b'.') => special(text).unwrap_or_else(|| Ok(decimal(text))),
        Some(b'+' | b'-' | b'0'..=b'9') => special(text).unwrap_or_else(|| Ok(number(text))),
        _ => Ok(Value::from(text)),
    }
}

/// A scalar with one of the tags of YAML, without the prefix `!!`; quotes do not matter then.
/// None where the tag gives no meaning of its own.
pub(crate) fn tagged(tag: &str, text: &str) -> Option<Resolved> {
    let fits = |value: &Value| match tag {
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        _ => value.is_null(),
    };
    match tag {
        "str" | "timestamp" => Some(Ok(Value::from(text))),
        "binary" => Some(binary(text)),
        "bool" | "int" | "float" | "null" => Some(plain(text).and_then(|value| {
            if fits(&value) { Ok(value) } else { Err(format!("`{text}` is no {tag}")) }
        })),
        _ => None,
    }
}

/// The key that a scalar becomes in JSON; none where it can be no key.
pub(crate) fn key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Some(whole.to_string()),
            None => number.as_f64().map(go_float),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn word(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Some(Value::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(Value::Bool(false))
        }
        _ => None,
    }
}

/// Numbers that JSON has not.
fn special(text: &str) -> Option<Resolved> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let no_number = matches!(text, ".nan" | ".NaN" | ".NAN");
    let infinite = matches!(unsigned, ".inf" | ".Inf" | ".INF");
    (no_number || infinite).then(|| Err(format!("`{text}` is no number that JSON could carry")))
}

fn decimal(text: &str) -> Value {
    let digits =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let parsed = digits.then(|| text.parse::<f64>().ok()).flatten();
    parsed.filter(|value| value.is_finite()).map_or_else(|| Value::from(text), from_float)
}

fn number(text: &str) -> Value {
    if is_date(text) {
        return Value::from(text);
    }
    let bare = text.replace('_', "");
    if let Some(value) = integer(&bare) {
        return value;
    }
    let float = is_yaml_float(&bare).then(|| bare.parse::<f64>().ok()).flatten();
    if let Some(value) = float.filter(|value| value.is_finite()) {
        return from_float(value);
    }
    Value::from(text)
}

/// Integers as Go's `strconv.ParseInt` with base 0 reads them.
fn integer(text: &str) -> Option<Value> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, unsigned.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, unsigned.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, unsigned.get(2..)?),
        [b'0', _, ..] => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    // A second sign is none of Go's digits, but Rust's parser takes one.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, base).ok()?;
    let value = if negative { -magnitude } else { magnitude };
    match i64::try_from(value) {
        Ok(value) => Some(Value::from(value)),
        // Kubernetes has no unsigned integers: beyond 64 bits with a sign it is a float.
        Err(_) => u64::try_from(value).ok().map(|value| Value::from(value as f64)),
    }
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn is_yaml_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

/// What begins like a date is never a number: both ways, it stays a text.
fn is_date(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..])
}

/// A float as it comes out at the other end: Go writes a whole number without a fraction, and the
/// API server then reads an integer.
fn from_float(value: f64) -> Value {
    const EXACT: f64 = 9_223_372_036_854_774_784.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Go's shortest form of a 32-bit float, which is what go-yaml makes of a float that is a key.
fn go_float(value: f64) -> String {
    let scientific = format!("{:e}", value as f32);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{}", value as f32);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn binary(text: &str) -> Resolved {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    let compact: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let unpadded = compact.strip_suffix(b"==").or(compact.strip_suffix(b"=")).unwrap_or(&compact);
    for byte in unpadded {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err("the value of !!binary is no base64".to_owned()),
        };
        buffer = (buffer << 6 | u32::from(six)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits & 0xff) as u8);
        }
    }
    if !compact.len().is_multiple_of(4) {
        return Err("the value of !!binary is no base64".to_owned());
    }
    // Go puts the replacement character for what is no UTF-8 when it writes the JSON.
    Ok(Value::from(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{key, plain, tagged};

    /// Each checked against go-yaml 2.4 and encoding/json.
    #[test]
    fn plain_scalars_mean_what_kubernetes_reads() {
        let cases: &[(&str, Value)] = &[
            ("", json!(null)),
            ("~", json!(null)),
            ("Null", json!(null)),
            ("nUll", json!("nUll")),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("y", json!(true)),
            ("yES", json!("yES")),
            ("0644", json!(420)),
            ("0o644", json!(420)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("08", json!(8)),
            ("+5", json!(5)),
            ("-0x10", json!(-16)),
            ("--5", json!("--5")),
            ("1_000", json!(1000)),
            ("1.0", json!(1)),
            ("1e3", json!(1000)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("5.", json!(5)),
            (".", json!(".")),
            ("1e999", json!("1e999")),
            ("9223372036854775807", json!(9_223_372_036_854_775_807_i64)),
            ("9223372036854775808", json!(9_223_372_036_854_775_808.0_f64)),
            ("-9223372036854775808", json!(-9_223_372_036_854_775_808_i64)),
            ("1e30", json!(1e30)),
            ("1.2.3", json!("1.2.3")),
            ("10.0.0.1", json!("10.0.0.1")),
            ("2001-12-14", json!("2001-12-14")),
            ("12:30:45", json!("12:30:45")),
            ("-", json!("-")),
            ("0x", json!("0x")),
            ("1e", json!("1e")),
            ("0x1p4", json!("0x1p4")),
            ("+", json!("+")),
        ];
        for (text, wanted) in cases {
            assert_eq!(plain(text).as_ref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn numbers_that_json_has_not_are_errors() {
        for text in [".nan", ".inf", "-.Inf", "+.INF"] {
            assert!(plain(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tags_decide_whatever_the_quotes_say() {
        assert_eq!(tagged("str", "12"), Some(Ok(json!("12"))));
        assert_eq!(tagged("int", "12"), Some(Ok(json!(12))));
        assert_eq!(tagged("float", "3"), Some(Ok(json!(3))));
        assert_eq!(tagged("binary", "aGVs\nbG8="), Some(Ok(json!("hello"))));
        assert!(tagged("int", "twelve").is_some_and(|value| value.is_err()));
        assert!(tagged("binary", "*").is_some_and(|value| value.is_err()));
        assert_eq!(tagged("own", "x"), None);
    }

    #[test]
    fn keys_become_strings_as_go_writes_them() {
        let cases = [
            ("yes", Some("true")),
            ("0x10", Some("16")),
            ("1.5", Some("1.5")),
            ("a", Some("a")),
            ("~", None),
            ("1234567.5", Some("1.2345675e+06")),
            ("0.00001", Some("1e-05")),
        ];
        for (text, wanted) in cases {
            let value = plain(text).unwrap();
            assert_eq!(key(&value).as_deref(), wanted, "{text}");
        }
    }
}
