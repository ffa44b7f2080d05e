//! Bytes as hexadecimal digits.

/// Returns two lower-case digits per byte.
pub fn lowercase_hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
    bytes.iter().flat_map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::lowercase_hex;

    #[test]
    fn hex_has_two_lower_case_digits_per_byte() {
        assert_eq!(lowercase_hex(&[]), "");
        assert_eq!(lowercase_hex(&[0, 9, 10, 0xaf, 255]), "00090aafff");
    }
}
