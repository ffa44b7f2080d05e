//! Byte patterns of `buffer_pattern` and `verify_pattern`: `0xdeadbeef`, `"text"`, `-12`, `%o`, `'file'`.

use super::{Parsed, ValueError};
use crate::plan::PatternPart;

/// fio's limit on the length of a pattern.
const MAX_PATTERN_BYTES: usize = 512;

/// A pattern without fields. `read_file` gives the contents of a file named in single quotes.
pub fn pattern(text: &str, read_file: impl Fn(&str) -> Option<Vec<u8>>) -> Parsed<Vec<u8>> {
    let parts = pattern_with_fields(text, read_file)?;
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            PatternPart::Bytes(part) => bytes.extend(part),
            PatternPart::Offset => {
                return Err(ValueError::new("`%o` is possible in verify_pattern only"));
            }
        }
    }
    Ok(bytes)
}

/// A pattern with `%o` fields.
pub fn pattern_with_fields(
    text: &str,
    read_file: impl Fn(&str) -> Option<Vec<u8>>,
) -> Parsed<Vec<PatternPart>> {
    let mut parts: Vec<PatternPart> = Vec::new();
    let mut rest = text.trim();
    let mut length = 0;
    while !rest.is_empty() {
        let (part, left) = next_part(rest, &read_file).map_err(|error| error.within(text, rest))?;
        length += match &part {
            PatternPart::Bytes(bytes) => bytes.len(),
            PatternPart::Offset => 8,
        };
        match (parts.last_mut(), part) {
            (Some(PatternPart::Bytes(last)), PatternPart::Bytes(more)) => last.extend(more),
            (_, part) => parts.push(part),
        }
        rest = left.trim_start();
    }
    if length > MAX_PATTERN_BYTES {
        return Err(ValueError::new(format!(
            "the pattern has {length} bytes, more than {MAX_PATTERN_BYTES}"
        )));
    }
    if length == 0 {
        return Err(ValueError::new("the pattern is empty"));
    }
    Ok(parts)
}

fn next_part<'t>(
    text: &'t str,
    read_file: &impl Fn(&str) -> Option<Vec<u8>>,
) -> Parsed<(PatternPart, &'t str)> {
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
        let bytes = read_file(path)
            .ok_or_else(|| ValueError::new(format!("cannot read the pattern file `{path}`")))?;
        (bytes, rest)
    } else if text.starts_with("0x") || text.starts_with("0X") {
        hexadecimal(text)?
    } else {
        decimal(text)?
    };
    Ok((PatternPart::Bytes(bytes), rest))
}

/// `0xdead` is the bytes de ad; a lone digit is one byte by itself, at the front.
fn hexadecimal(text: &str) -> Parsed<(Vec<u8>, &str)> {
    let digits = &text[2..];
    let end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
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
        .collect::<Parsed<Vec<u8>>>()?;
    Ok((bytes, rest))
}

/// A decimal number of 32 bits: its bytes, lowest first, without leading zeros.
fn decimal(text: &str) -> Parsed<(Vec<u8>, &str)> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let split = text.len() - unsigned.len() + end;
    let value: i64 = text[..split].parse().map_err(|_| not_a_pattern(text))?;
    if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
        return Err(
            ValueError::new(format!("`{}` has more than 32 bits", &text[..split]))
                .help("write longer patterns in hexadecimal: `0xdeadbeef00`"),
        );
    }
    let mut bytes = (value as u32).to_le_bytes().to_vec();
    while bytes.len() > 1 && bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok((bytes, &text[split..]))
}

fn not_a_pattern(text: &str) -> ValueError {
    ValueError::new(format!("`{text}` is not a pattern"))
        .help("write `0xdeadbeef`, `\"text\"`, a decimal number, `'file'`, or several of them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> String {
        let file = |path: &str| (path == "patf").then(|| b"XYZ".to_vec());
        match pattern(text, file) {
            Ok(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Err(error) => format!("error: {}", error.message),
        }
    }

    #[test]
    fn patterns_are_fios() {
        // Measured with fio 3.33.
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
        ] {
            assert_eq!(hex(text), bytes, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "abc",
            "0x",
            "\"a\"b",
            "4294967296",
            "",
            "'nofile'",
            "\"open",
            "%o",
        ] {
            assert!(hex(text).starts_with("error"), "{text}");
        }
    }

    #[test]
    fn offsets_are_fields() {
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

    proptest! {
        #[test]
        fn never_panics(text in "[-\"'%o0-9xa-f ]{0,20}|\\PC{0,10}") {
            let _ = pattern_with_fields(&text, |_| None);
        }
    }
}
