//! Texts that differ in their numbers only, as one text with the range of each number.
//!
//! The texts are evidence of stored results, of which those of older versions lack the cause with
//! its quantities. So the numbers are found in the text, once, and each is kept with its value.

/// A number of a text, with its value.
type PrintedNumber<'a> = (f64, &'a str);

/// Returns one text for all: numbers that differ become `15.7 to 33.8`. `None`: the texts differ
/// in more than their numbers, or there are none.
pub(super) fn number_ranges(texts: &[&str]) -> Option<String> {
    let split: Vec<_> = texts.iter().map(|text| words_and_numbers(text)).collect();
    let (first, _) = split.first()?;
    if split.iter().any(|(words, _)| words != first) {
        return None;
    }
    let parts = first.iter().enumerate().map(|(index, words)| {
        let numbers = split.iter().filter_map(|(_, numbers)| numbers.get(index));
        format!("{words}{}", number_range(numbers.copied()))
    });
    Some(parts.collect())
}

/// Lowest and highest number: `4 to 12`. A single number if all are equal. Empty without numbers.
fn number_range<'a>(numbers: impl Iterator<Item = PrintedNumber<'a>>) -> String {
    let mut numbers: Vec<PrintedNumber<'a>> = numbers.collect();
    numbers.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let texts = || numbers.iter().map(|(_, text)| *text);
    match (texts().next(), texts().next_back()) {
        (Some(lowest), Some(highest)) if lowest != highest => format!("{lowest} to {highest}"),
        (lowest, _) => lowest.unwrap_or_default().to_owned(),
    }
}

/// Splits a text into words and the numbers between them. Digits of a name, a version or an
/// address, such as `nvme0n1`, `osd.5` or `10.0.0.1`, belong to the words. `findings.ts` of the
/// page has the same rule.
fn words_and_numbers(text: &str) -> (Vec<&str>, Vec<PrintedNumber<'_>>) {
    let joins_to_name = |before: char| {
        before.is_alphanumeric() || matches!(before, '_' | '.' | ',' | ':' | '/' | '#' | '-')
    };
    let (mut words, mut numbers) = (Vec::new(), Vec::new());
    let (mut from, mut at) = (0, 0);
    while at < text.len() {
        if !is_digit(text, at) || text[..at].ends_with(joins_to_name) {
            at += 1;
            continue;
        }
        match number_end(text, at) {
            Some(end) => {
                let number = &text[at..end];
                words.push(&text[from..at]);
                numbers.push((number.replace(',', "").parse().unwrap_or_default(), number));
                (from, at) = (end, end);
            }
            None => at += 1,
        }
    }
    words.push(&text[from..]);
    debug_assert_eq!(words.len(), numbers.len() + 1);
    (words, numbers)
}

/// Returns the end of the number that starts at `start`, with its commas between thousands and its
/// decimals. `None`: more digits follow, as in an address, so that the digits are no number.
fn number_end(text: &str, start: usize) -> Option<usize> {
    let is_sign = |at: usize, signs: &[u8]| {
        text.as_bytes()
            .get(at)
            .is_some_and(|sign| signs.contains(sign))
    };
    let mut end = after_digits(text, start);
    while is_sign(end, b",") && (1..=3).all(|offset| is_digit(text, end + offset)) {
        end += 4;
    }
    if is_sign(end, b".") && is_digit(text, end + 1) {
        end = after_digits(text, end + 1);
    }
    let is_continued = is_digit(text, end) || (is_sign(end, b".,:") && is_digit(text, end + 1));
    (!is_continued).then_some(end)
}

fn after_digits(text: &str, start: usize) -> usize {
    let digits = text.as_bytes()[start..].iter();
    start + digits.take_while(|byte| byte.is_ascii_digit()).count()
}

fn is_digit(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts, and the one text that the terminal and the page make of them: `null` if they are not
    /// alike. The tests of the page read the same file.
    const CASES: &str = include_str!("number_ranges.json");

    #[test]
    fn numbers_that_differ_become_ranges_but_names_do_not() {
        let cases: Vec<(Vec<&str>, Option<&str>)> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() > 10);
        for (texts, expected) in cases {
            assert_eq!(number_ranges(&texts).as_deref(), expected, "{texts:?}");
        }
        assert_eq!(number_ranges(&[]), None);
    }

    #[test]
    fn digits_are_split_from_words_but_not_from_names() {
        assert_eq!(
            words_and_numbers("µ4k 4k, 1.5."),
            (vec!["µ4k ", "k, ", "."], vec![(4.0, "4"), (1.5, "1.5")])
        );
        assert_eq!(words_and_numbers("7"), (vec!["", ""], vec![(7.0, "7")]));
        let thousand = (vec!["", " B"], vec![(1024.0, "1,024")]);
        assert_eq!(words_and_numbers("1,024 B"), thousand);
        assert_eq!(words_and_numbers(""), (vec![""], vec![]));
    }
}
