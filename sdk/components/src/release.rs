//! Which release a tag of an image is of.

/// The numbers of a release: `R21.4.1` and `2011.L5` are 21.4.1 and 2011. None for what has none, such
/// as `latest`.
#[must_use]
pub fn release(tag: &str) -> Option<Vec<u32>> {
    let digits = tag.strip_prefix(['R', 'r', 'v']).unwrap_or(tag);
    let numbers: Vec<u32> = digits.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    let first = numbers.first()?;
    // Of 2011 and before the year stands first: 20.11.
    Some(if *first > 1900 {
        [first / 100, first % 100].into_iter().chain(numbers.iter().skip(1).copied()).collect()
    } else {
        numbers
    })
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn releases_are_in_order() {
        let order = ["5.1", "2003.1", "2011.L5", "R21.3", "R21.4", "R21.4.1", "R24.1", "R25.1-rc1"];
        for pair in order.windows(2) {
            assert!(release(pair[0]) < release(pair[1]), "{pair:?}");
        }
        assert_eq!(release("latest"), None);
        assert_eq!(release("master-nightly"), None);
    }
}
