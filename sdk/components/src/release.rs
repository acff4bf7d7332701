//! Which release a tag of an image is of.

/// Numbers of a release are no longer: more is a date, or a commit.
const LONGEST: u32 = 99;

/// The numbers of a release: `R21.4.1` and `2011.L5` are 21.4.1 and 20.11.5, without zeros at the end. What follows a hyphen
/// is a build or a candidate of it. None for what has none: `latest`, a date, a commit.
#[must_use]
pub fn release(tag: &str) -> Option<Vec<u32>> {
    let digits = tag.strip_prefix(['R', 'r', 'v']).unwrap_or(tag);
    let digits = digits.split_once('-').map_or(digits, |(release, _)| release);
    let number = |part: &str| part.strip_prefix('L').unwrap_or(part).parse().ok();
    let mut numbers: Vec<u32> = digits.split('.').map_while(number).collect();
    let first = *numbers.first()?;
    // Up to 2011 it was the year and the month.
    let is_month = (1900..=2112).contains(&first) && (1..=12).contains(&(first % 100));
    if is_month {
        numbers.splice(..1, [first / 100, first % 100]);
    }
    if numbers.iter().any(|number| *number > LONGEST) {
        return None;
    }
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn releases_are_in_order() {
        let order = [
            "5.1",
            "1912",
            "2003.1",
            "2011.L4",
            "2011.L5",
            "R21.3",
            "R21.4",
            "R21.4.1",
            "R24.1",
            "R25.1-rc1",
        ];
        for pair in order.windows(2) {
            assert!(release(pair[0]) < release(pair[1]), "{pair:?}");
        }
        for pair in [["R24.1", "R24.1.0"], ["R24.1-5", "R24.1"], ["v24.1", "24.1"]] {
            assert_eq!(release(pair[0]), release(pair[1]), "{pair:?}");
        }
        for none in
            ["latest", "master-nightly", "20240115", "2024-05-01", "2024.05.01", "12345678", ""]
        {
            assert_eq!(release(none), None, "{none}");
        }
    }
}
