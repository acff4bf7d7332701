//! Numbers of virtual functions, as they are written for a vrouter.

/// What the kernel reads of a word as a number of virtual functions: decimal, octal after 0, hexadecimal after 0x
/// (`kstrtou16` with base 0 in linux, `drivers/pci/iov.c`). None where it reads none.
#[must_use]
pub fn number_of_virtual_functions(word: &str) -> Option<u16> {
    let word = word.strip_prefix('+').unwrap_or(word);
    let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let (digits, base) = match (hexadecimal, word.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        (None, _) => (word, 10),
    };
    let is_number = digits.chars().all(|digit| digit.is_digit(base));
    u16::from_str_radix(digits, base).ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::number_of_virtual_functions;

    #[test]
    fn numbers_are_those_of_the_kernel() {
        for (word, number) in
            [("0", 0), ("8", 8), ("0x10", 16), ("010", 8), ("65535", 65_535), ("+4", 4)]
        {
            assert_eq!(number_of_virtual_functions(word), Some(number), "{word}");
        }
        for none in ["four", "-1", "65536", "08", "0x", "", "4.5", "+", "++4", "0x+1", "4k"] {
            assert_eq!(number_of_virtual_functions(none), None, "{none}");
        }
    }
}
