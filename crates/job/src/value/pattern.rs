//! Parses the byte patterns of `buffer_pattern` and `verify_pattern`: `0xdeadbeef`, `"text"`,
//! `-12`, `%o`, `'file'`.

use super::{ParsedValue, ValueError};
use crate::plan::PatternPart;

/// Limit on a pattern, in bytes. fio 3.33 allows 512 bytes, later versions allow this length.
pub(crate) const MAX_PATTERN_BYTES: usize = 128 << 10;

/// fio's limit on the number of `%o` in a pattern.
const MAX_OFFSET_FIELDS: usize = 8;

/// Length of a `%o` field in bytes.
const OFFSET_FIELD_BYTES: usize = 8;

/// Parses a pattern without fields. `read_file` returns at least the first `MAX_PATTERN_BYTES`
/// bytes of a file named in single quotes, or the whole file if it is shorter.
pub fn pattern(text: &str, read_file: impl Fn(&str) -> Option<Vec<u8>>) -> ParsedValue<Vec<u8>> {
    let parts = pattern_with_fields(text, read_file)?;
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            PatternPart::Bytes(part) => bytes.extend(part),
            PatternPart::Offset => {
                return Err(ValueError::new("`%o` is valid only in verify_pattern"));
            }
        }
    }
    Ok(bytes)
}

/// Parses a pattern with `%o` fields.
pub(crate) fn pattern_with_fields(
    text: &str,
    read_file: impl Fn(&str) -> Option<Vec<u8>>,
) -> ParsedValue<Vec<PatternPart>> {
    let mut parts: Vec<PatternPart> = Vec::new();
    let mut rest = text.trim();
    let mut left_bytes = MAX_PATTERN_BYTES;
    let mut fields = 0;
    if rest.is_empty() {
        return Err(ValueError::new("the pattern is empty"));
    }
    while !rest.is_empty() {
        let next = next_part(rest, left_bytes, &read_file);
        let (part, left) = next.map_err(|error| error.within(text, rest))?;
        let length = match &part {
            PatternPart::Bytes(bytes) => bytes.len(),
            PatternPart::Offset => OFFSET_FIELD_BYTES,
        };
        fields += usize::from(part == PatternPart::Offset);
        if fields > MAX_OFFSET_FIELDS {
            let message = format!("the pattern has more than {MAX_OFFSET_FIELDS} `%o` fields");
            return Err(ValueError::new(message));
        }
        left_bytes = left_bytes.checked_sub(length).ok_or_else(|| {
            ValueError::new(format!(
                "the pattern has more than {MAX_PATTERN_BYTES} bytes"
            ))
        })?;
        match (parts.last_mut(), part) {
            (Some(PatternPart::Bytes(last)), PatternPart::Bytes(more)) => last.extend(more),
            (_, part) => parts.push(part),
        }
        rest = left;
    }
    Ok(parts)
}

/// Parses the first part and returns it with the rest of the text. As in fio, at most `left_bytes`
/// bytes of a file are used.
fn next_part<'t>(
    text: &'t str,
    left_bytes: usize,
    read_file: &impl Fn(&str) -> Option<Vec<u8>>,
) -> ParsedValue<(PatternPart, &'t str)> {
    if let Some(rest) = text.strip_prefix("%o") {
        return Ok((PatternPart::Offset, rest));
    }
    let (bytes, rest) = if let Some(quoted) = text.strip_prefix('"') {
        let (string, rest) = quoted
            .split_once('"')
            .ok_or_else(|| ValueError::new("the closing `\"` is missing"))?;
        (string.as_bytes().to_vec(), rest)
    } else if let Some(quoted) = text.strip_prefix('\'') {
        let (path, rest) = quoted
            .split_once('\'')
            .ok_or_else(|| ValueError::new("the closing `'` is missing"))?;
        let mut bytes = read_file(path)
            .ok_or_else(|| ValueError::new(format!("cannot read the pattern file `{path}`")))?;
        bytes.truncate(left_bytes);
        (bytes, rest)
    } else if is_hexadecimal(text) {
        hexadecimal(text)?
    } else {
        decimal(text)?
    };
    if bytes.is_empty() {
        return Err(ValueError::new("the pattern has an empty part"));
    }
    Ok((PatternPart::Bytes(bytes), rest))
}

/// Whether the text begins with `0x` and a hexadecimal digit.
fn is_hexadecimal(text: &str) -> bool {
    let start = text.as_bytes();
    start.len() > 2 && start[..2].eq_ignore_ascii_case(b"0x") && start[2].is_ascii_hexdigit()
}

/// Parses `0xdead` into the bytes de ad. With an odd number of digits, the first byte is the first
/// digit. A 0 before an `x` begins the next number: `0xff0x14` is ff 14.
fn hexadecimal(text: &str) -> ParsedValue<(Vec<u8>, &str)> {
    let digits = &text[2..];
    let mut end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    let begins_next = digits[end..].starts_with(['x', 'X']) && digits[..end].ends_with('0');
    end -= usize::from(begins_next);
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() {
        return Err(not_a_pattern(text));
    }
    let padded = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits.to_owned()
    };
    let bytes = (0..padded.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&padded[at..at + 2], 16).map_err(|_| not_a_pattern(text)))
        .collect::<ParsedValue<Vec<u8>>>()?;
    Ok((bytes, rest))
}

/// Parses a signed decimal number of 32 bits into its bytes, least significant first, without
/// leading zeros. The number ends before the next `0x`: `-120xff` is -12 and ff. As in fio, only a
/// decimal number may have a blank before it.
fn decimal(text: &str) -> ParsedValue<(Vec<u8>, &str)> {
    let number = text.trim_start();
    let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
    let mut end = unsigned
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let begins_next = unsigned[end..].starts_with(['x', 'X']) && unsigned[..end].ends_with('0');
    end -= usize::from(begins_next);
    if end == 0 {
        return Err(not_a_pattern(text));
    }
    let (number, rest) = number.split_at(number.len() - unsigned.len() + end);
    let value: i32 = number.parse().map_err(|_| {
        ValueError::new(format!("`{number}` has more than 31 bits"))
            .help("use hexadecimal for longer patterns: `0xdeadbeef00`")
    })?;
    let mut bytes = value.to_le_bytes().to_vec();
    while bytes.len() > 1 && bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok((bytes, rest))
}

fn not_a_pattern(text: &str) -> ValueError {
    ValueError::new(format!("`{text}` is not a pattern")).help(
        "use `0xdeadbeef`, `\"text\"`, a decimal number, `'file'`, or several of these without \
         blanks",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> String {
        let file = |path: &str| (path == "patf").then(|| b"XYZ".to_vec());
        match pattern(text, file) {
            Ok(bytes) => crate::lowercase_hex(&bytes),
            Err(error) => format!("error: {}", error.message),
        }
    }

    #[test]
    fn patterns_equal_those_of_fio() {
        // Values measured with fio 3.33.
        for (text, bytes) in [
            ("0xdeadface", "deadface"),
            ("0xdea", "0dea"),
            ("258", "0201"),
            ("-12", "f4ffffff"),
            ("\"ab\"0x1-12", "616201f4ffffff"),
            ("0xff\"abcd\"", "ff61626364"),
            ("'patf'0x00", "58595a00"),
            ("0x00ff 1", "00ff01"),
            ("1-2", "01feffffff"),
            ("0", "00"),
            ("\"abcd\"-120xdeadface", "61626364f4ffffffdeadface"),
            ("0xff0x14", "ff14"),
            ("0x00x12", "0012"),
            ("00x12", "0012"),
            ("1200x12", "7812"),
            ("+5", "05"),
            ("-2147483648", "00000080"),
            ("\"ab\" 1", "616201"),
        ] {
            assert_eq!(hex(text), bytes, "{text}");
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for text in [
            "abc",
            "0x",
            "\"a\"b",
            "4294967295",
            "2147483648",
            "-2147483649",
            "12 0x5",
            "0x00ff 0x1",
            "\"ab\" \"cd\"",
            "0x0x12",
            "\"\"",
            "\"a\"\"\"",
            "1%o",
            "",
            "'nofile'",
            "\"open",
            "%o",
        ] {
            assert!(hex(text).starts_with("error"), "{text}");
        }
    }

    #[test]
    fn offset_format_becomes_an_offset_part() {
        let parts = pattern_with_fields("0xff%o\"abcd\"-12", |_| None).unwrap();
        assert_eq!(
            parts,
            [
                PatternPart::Bytes(vec![0xff]),
                PatternPart::Offset,
                PatternPart::Bytes(vec![0x61, 0x62, 0x63, 0x64, 0xf4, 0xff, 0xff, 0xff]),
            ]
        );
    }

    #[test]
    fn long_pattern_is_cut_at_the_limit_of_newer_fio() {
        let file = |_: &str| Some(vec![7; MAX_PATTERN_BYTES + 1]);
        assert_eq!(pattern("'big'", file).unwrap().len(), MAX_PATTERN_BYTES);
        assert!(pattern("'big'1", file).is_err());
        assert!(pattern_with_fields(&"%o".repeat(8), file).is_ok());
        assert!(pattern_with_fields(&"%o".repeat(9), file).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_patterns_never_panic(text in "[-\"'%o0-9xa-f ]{0,20}|\\PC{0,10}") {
            let _ = pattern_with_fields(&text, |_| None);
        }
    }
}
