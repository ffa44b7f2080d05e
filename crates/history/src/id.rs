//! Ids of results: ten hexadecimal digits. Output shows the shortest unique prefix.

use iosonde_job::lowercase_hex;
use std::io;

/// Digits of an id.
pub const DIGITS: usize = 10;
/// Digits shown at least.
const FEWEST_SHOWN: usize = 6;

/// A new id, drawn at random.
pub fn random_id() -> io::Result<String> {
    let mut bytes = [0; DIGITS / 2];
    getrandom::fill(&mut bytes)?;
    Ok(lowercase_hex(&bytes))
}

/// Number of leading digits that distinguish these ids.
pub(super) fn shown_digits(ids: &[String]) -> usize {
    let mut sorted: Vec<&str> = ids.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let common = |pair: &[&str]| {
        let same = pair[0].bytes().zip(pair[1].bytes());
        same.take_while(|(a, b)| a == b).count()
    };
    let longest = sorted.windows(2).map(common).max().unwrap_or(0);
    (longest + 1).max(FEWEST_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_digits_distinguish_ids() {
        let ids = |list: &[&str]| list.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(shown_digits(&ids(&[])), 6);
        assert_eq!(shown_digits(&ids(&["0123456789", "a123456789"])), 6);
        assert_eq!(shown_digits(&ids(&["0123456789", "f", "0123456089"])), 8);
        assert_eq!(random_id().unwrap().len(), DIGITS);
    }
}
