//! Amounts of resources, as Kubernetes writes them.

/// The amount of a quantity such as `2Gi`, `3920m` or `16`; none for what is no quantity.
pub(crate) fn parse(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 13] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let text = text.trim();
    let found = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|number| (number, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    number.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * factor)
}

/// The bytes of a size as the JVM writes it: `4g`, `512m`, `1048576`.
pub(crate) fn bytes(text: &str) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, shift) = match lower.char_indices().last()? {
        (at, 'k') => (lower.get(..at)?, 10),
        (at, 'm') => (lower.get(..at)?, 20),
        (at, 'g') => (lower.get(..at)?, 30),
        _ => (lower.as_str(), 0),
    };
    let number: u64 = number.parse().ok()?;
    Some(of(number.checked_mul(1_u64 << shift)?))
}

/// A whole number as an amount. Beyond 2^53 it is rounded, which is beyond any node.
#[expect(clippy::cast_precision_loss, reason = "no node has so much that it matters")]
pub(crate) fn of(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::{bytes, parse};

    #[test]
    fn quantities_have_suffixes_of_both_sorts() {
        assert_eq!(parse("2Gi"), Some(2_147_483_648.0));
        assert_eq!(parse("3920m"), Some(3.92));
        assert_eq!(parse("16"), Some(16.0));
        assert_eq!(parse("32780912Ki"), Some(33_567_653_888.0));
        assert_eq!(parse("1e3"), Some(1000.0));
        assert_eq!(parse("0"), Some(0.0));
        assert_eq!(parse("many"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn sizes_of_the_jvm_have_one_letter() {
        assert_eq!(bytes("4g"), Some(4_294_967_296.0));
        assert_eq!(bytes("512M"), Some(536_870_912.0));
        assert_eq!(bytes("1048576"), Some(1_048_576.0));
        assert_eq!(bytes(""), None);
        assert_eq!(bytes("g"), None);
        assert_eq!(bytes("99999999999999999999g"), None);
    }
}
