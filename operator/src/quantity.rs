//! Amounts of bytes, as Kubernetes writes them: any other way would come back as a difference.

const UNITS: [&str; 4] = ["Mi", "Gi", "Ti", "Pi"];

/// So many mebibytes.
#[must_use]
pub fn of_mebibytes(mut amount: u64) -> String {
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while amount.is_multiple_of(1024)
        && let Some(larger) = units.next()
    {
        (amount, unit) = (amount / 1024, larger);
    }
    format!("{amount}{unit}")
}

/// How many mebibytes a whole number of them, or of a larger unit, is.
#[must_use]
pub fn mebibytes(text: &str) -> Option<u64> {
    bytes(text).filter(|bytes| bytes.is_multiple_of(1 << 20)).map(|bytes| bytes >> 20)
}

/// How many bytes; nothing where it is no whole number of a unit.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    const FACTORS: [(&str, u64); 12] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("Ei", 1 << 60),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("E", 1_000_000_000_000_000_000),
    ];
    let found = FACTORS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    // A number with an exponent is a power of ten: of that the API server makes no other.
    if let Some((number, exponent)) = text.split_once(['e', 'E'])
        && exponent.starts_with(|first: char| first.is_ascii_digit())
    {
        let factor = 10_u64.checked_pow(exponent.parse().ok()?)?;
        return number.parse::<u64>().ok()?.checked_mul(factor);
    }
    let (number, factor) = found.unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_as_the_api_server_gives_it_back() {
        let all = [(512, "512Mi"), (1024, "1Gi"), (1536, "1536Mi"), (1 << 20, "1Ti")];
        for (amount, text) in all {
            assert_eq!((of_mebibytes(amount).as_str(), mebibytes(text)), (text, Some(amount)));
        }
        assert_eq!(mebibytes("1024Mi"), mebibytes("1Gi"));
    }

    #[test]
    fn what_is_no_whole_number_of_a_unit_is_no_amount() {
        assert_eq!(
            [bytes("10G"), bytes("4096"), bytes("1Ki")],
            [Some(10_000_000_000), Some(4096), Some(1024)]
        );
        assert_eq!([bytes("1e12"), bytes("2Ei"), bytes("3E")].map(|one| one.is_some()), [true; 3]);
        for text in ["", "Gi", "1.5Gi", "-1Gi", "x", "99999999999Ti", "1e99", "Ei", "16Ei"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        assert_eq!(mebibytes("4096"), None);
    }
}
