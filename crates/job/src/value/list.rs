//! Parses lists: read,write,trim values, colon lists, ranges, CPU numbers.

use super::{ParsedValue, ValueError, number};
use crate::plan::{Direction, PerDirection};

/// Parses `read,write,trim` into a value for each direction.
///
/// An empty field leaves `target` unchanged. The last value also applies to the remaining
/// directions, unless a comma follows it. As in fio, `:` and `-` may replace the comma.
pub fn directions<T: Clone>(
    text: &str,
    target: &mut PerDirection<T>,
    parse: impl Fn(&str) -> ParsedValue<T>,
) -> ParsedValue<()> {
    let fields = fields(text);
    if fields.len() > 3 {
        return Err(ValueError::new("more than three values")
            .help("give one value for reads, one for writes and one for trims"));
    }
    for (direction, field) in Direction::ALL.into_iter().zip(&fields) {
        if !field.is_empty() {
            target[direction] = parse(field).map_err(|error| error.within(text, field))?;
        }
    }
    if let Some(last) = fields.last().filter(|last| !last.is_empty()) {
        let value = parse(last).map_err(|error| error.within(text, last))?;
        for direction in Direction::ALL.into_iter().skip(fields.len()) {
            target[direction] = value.clone();
        }
    }
    Ok(())
}

fn fields(text: &str) -> Vec<&str> {
    if text.trim_start().starts_with('(') {
        return split_outside_parentheses(text);
    }
    let mut fields = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let minus_sign = c == '-' && text[start..at].trim().is_empty();
        if matches!(c, ',' | ':' | '-') && !minus_sign {
            fields.push(text[start..at].trim());
            start = at + 1;
        }
    }
    fields.push(text[start..].trim());
    fields
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && c == ','
    })
    .map(str::trim)
    .collect()
}

/// Splits a list at `:`; `\:` is a colon within a part.
pub(crate) fn colons(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                parts.last_mut().expect("never empty").push(':');
            }
            ':' => parts.push(String::new()),
            _ => parts.last_mut().expect("never empty").push(c),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Parses one to three ranges for reads, writes and trims: `1k-4k,8k-32k`. A reversed range is
/// swapped. A single value is a range of that value.
pub fn ranges(
    text: &str,
    parse: impl Fn(&str) -> ParsedValue<u64>,
) -> ParsedValue<Vec<(Direction, (u64, u64))>> {
    let fields: Vec<&str> = text.split([',', '/']).map(str::trim).collect();
    if fields.len() > 3 {
        return Err(ValueError::new("more than three ranges"));
    }
    let mut found = Vec::new();
    for (direction, field) in Direction::ALL.into_iter().zip(&fields) {
        if !field.is_empty() {
            found.push((
                direction,
                range(field, &parse).map_err(|error| error.within(text, field))?,
            ));
        }
    }
    if let Some(last) = fields.last().filter(|last| !last.is_empty()) {
        let value = range(last, &parse)?;
        for direction in Direction::ALL.into_iter().skip(fields.len()) {
            found.push((direction, value));
        }
    }
    Ok(found)
}

/// Parses `a-b` or `a:b` and returns the smaller value first; `a` alone is `a-a`.
pub fn range(text: &str, parse: impl Fn(&str) -> ParsedValue<u64>) -> ParsedValue<(u64, u64)> {
    let (low, high) = match text.split_once(['-', ':']) {
        Some((low, high)) => (
            parse(low.trim()).map_err(|error| error.within(text, low.trim()))?,
            parse(high.trim()).map_err(|error| error.within(text, high.trim()))?,
        ),
        None => {
            let value = parse(text)?;
            (value, value)
        }
    };
    Ok((low.min(high), low.max(high)))
}

/// Parses CPU numbers as fio does: `0,2-5`. Only the leading digits of each number count, and an
/// empty part ends the list. Unlike in fio, a part without a digit is an error: fio would take it
/// as CPU 0.
pub fn cpu_list(text: &str) -> ParsedValue<Vec<u32>> {
    let mut cpus = Vec::new();
    for field in text.split(',').take_while(|field| !field.is_empty()) {
        let bounds = field.split('-').take_while(|bound| !bound.is_empty());
        let bounds = bounds
            .map(leading_digits)
            .collect::<ParsedValue<Vec<u32>>>();
        let bounds = bounds.map_err(|error| error.within(text, field))?;
        let (Some(low), Some(high)) = (bounds.first(), bounds.last()) else {
            return Err(ValueError::new(format!("`{field}` is not a number")).within(text, field));
        };
        if u64::from(*high) >= MAX_CPUS {
            return Err(ValueError::new(format!("CPU {high} does not exist")).within(text, field));
        }
        cpus.extend(*low..=*high);
    }
    if cpus.is_empty() {
        return Err(ValueError::new(format!("`{text}` selects no CPU")));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Parses the number at the start of a text.
fn leading_digits(text: &str) -> ParsedValue<u32> {
    let trimmed = text.trim_start();
    let unsigned = trimmed.strip_prefix('+').unwrap_or(trimmed);
    let is_digit = |letter: char| letter.is_ascii_digit();
    let length = unsigned
        .find(|letter| !is_digit(letter))
        .unwrap_or(unsigned.len());
    let problem = match length {
        0 => "is not a number",
        _ => "is too large",
    };
    unsigned[..length]
        .parse()
        .map_err(|_| ValueError::new(format!("`{text}` {problem}")))
}

/// Parses numbers and ranges: `0,2-5`.
pub(crate) fn number_list(text: &str) -> ParsedValue<Vec<u32>> {
    let mut cpus = Vec::new();
    for field in text.split([',', ':']).map(str::trim) {
        let (low, high) = range(field, |part| number::bytes(part, number::Bytes::Binary))
            .map_err(|error| error.within(text, field))?;
        if high >= MAX_CPUS {
            return Err(ValueError::new(format!("CPU {high} does not exist")).within(text, field));
        }
        cpus.extend((low..=high).map(|cpu| cpu as u32));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Limit on CPU numbers: the largest NR_CPUS of Linux.
const MAX_CPUS: u64 = 8192;

/// Parses NUMA node numbers: `0,2-5`; `None` is `all`.
pub(crate) fn node_list(text: &str) -> ParsedValue<Option<Vec<u32>>> {
    match text.trim() {
        "all" => Ok(None),
        list => number_list(list)
            .map(Some)
            .map_err(|error| error.within(text, list)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(text: &str) -> ParsedValue<[u64; 3]> {
        let mut target = PerDirection::from_value(1);
        directions(text, &mut target, |part| {
            number::bytes(part, number::Bytes::Binary)
        })?;
        Ok([target.read, target.write, target.trim])
    }

    #[test]
    fn omitted_directions_take_the_last_value() {
        assert_eq!(sizes("8k"), Ok([8192; 3]));
        assert_eq!(sizes("4k,8k"), Ok([4096, 8192, 8192]));
        assert_eq!(sizes("4k,8k,"), Ok([4096, 8192, 1]));
        assert_eq!(sizes("8k,"), Ok([8192, 1, 1]));
        assert_eq!(sizes(",8k"), Ok([1, 8192, 8192]));
        assert_eq!(sizes(",8k,"), Ok([1, 8192, 1]));
        assert_eq!(sizes("4k:8k"), Ok([4096, 8192, 8192]));
        assert_eq!(sizes("4k-8k"), Ok([4096, 8192, 8192]));
        assert_eq!(sizes("(2*4k),8k"), Ok([8192, 8192, 8192]));
        assert!(sizes("1,2,3,4").is_err());
    }

    #[test]
    fn list_error_locates_the_wrong_field() {
        let error = sizes("4k,x8").unwrap_err();
        assert_eq!(error.part, Some(3..5));
    }

    #[test]
    fn colon_lists_unescape_backslashes() {
        assert_eq!(colons("/a:/b\\:c"), ["/a", "/b:c"]);
        assert_eq!(colons("F\\:\\x"), ["F:\\x"]);
        assert_eq!(colons(""), Vec::<String>::new());
    }

    #[test]
    fn ranges_are_ordered_and_copied_to_trim() {
        let parse = |part: &str| number::bytes(part, number::Bytes::Binary);
        let all = ranges("4k-1k,8k", parse).unwrap();
        assert_eq!(
            all,
            [
                (Direction::Read, (1024, 4096)),
                (Direction::Write, (8192, 8192)),
                (Direction::Trim, (8192, 8192))
            ]
        );
    }

    #[test]
    fn cpus_are_sorted_and_unique() {
        assert_eq!(cpu_list("5,0-2,1"), Ok(vec![0, 1, 2, 5]));
        assert!(cpu_list("0-99999999999").is_err());
        assert!(cpu_list("a").is_err());
        assert!(cpu_list("1-0").is_err());
        assert_eq!(node_list("all"), Ok(None));
    }

    #[test]
    fn cpus_are_read_as_by_fio() {
        assert_eq!(cpu_list("0x0-1KiB"), Ok(vec![0, 1]));
        assert_eq!(cpu_list("0x1"), Ok(vec![0]));
        assert_eq!(cpu_list(" +1 ,0 - 1"), Ok(vec![0, 1]));
        assert_eq!(cpu_list("0,,1"), Ok(vec![0]));
        assert_eq!(cpu_list("0-1-3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(cpu_list("1-"), Ok(vec![1]));
    }

    proptest! {
        #[test]
        fn arbitrary_lists_never_panic(text in "\\PC{0,16}") {
            let _ = sizes(&text);
            let _ = colons(&text);
            let _ = cpu_list(&text);
            let _ = ranges(&text, |part| number::bytes(part, number::Bytes::Binary));
        }
    }
}
