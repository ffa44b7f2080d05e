//! Elements and tables around texts, for browsers whose scripts are off. All texts are escaped.

use crate::suite::xml_element::XmlElement;
use iosonde_study::words;

/// Most rows of a table.
const ROWS_MAX: usize = 200;

/// Longest text in characters. A longer text is cut.
const TEXT_CHARACTERS_MAX: usize = 600;

/// Longest name in characters, as on the page. The end of a longer one is kept too.
const NAME_CHARACTERS_MAX: usize = 120;

/// Returns an element around a text, which is escaped and cut to a legible length.
pub(super) fn element(name: &'static str, text: &str) -> String {
    let cut: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
    XmlElement::new(name).with_text(&cut)
}

/// Shortens a name in the middle, since names mostly differ at their ends. A long name would leave
/// no room for the text that follows it.
pub(super) fn short_name(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= NAME_CHARACTERS_MAX {
        return name.to_owned();
    }
    let tail = NAME_CHARACTERS_MAX / 3;
    let head = NAME_CHARACTERS_MAX - tail - 1;
    let (head, tail) = (&characters[..head], &characters[characters.len() - tail..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// Returns a row of a table.
pub(super) fn table_row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| element("td", text)).collect();
    XmlElement::new("tr").with_xml(&cells.concat())
}

/// Returns a table of the first rows with the number of the others, or `None` without rows.
pub(super) fn table(columns: &[&str], mut rows: Vec<String>) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let hidden = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let titles: Vec<String> = columns.iter().map(|title| element("th", title)).collect();
    let head = XmlElement::new("tr").with_xml(&titles.concat());
    let table = XmlElement::new("table").with_xml(&[head, rows.concat()].concat());
    Some(table + &hidden_items_text(hidden, "more row").unwrap_or_default())
}

/// Counts the items that the text leaves out. `None` if it has all.
pub(super) fn hidden_items_text(hidden: usize, one: &str) -> Option<String> {
    (hidden > 0).then(|| element("p", &words::counted(hidden, one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_hostile_text_is_cut_and_escaped() {
        let hostile = format!("</noscript><script>\u{202e}{}", "x".repeat(10_000));
        let html = element("p", &hostile);
        assert!(html.starts_with("<p>&lt;/noscript&gt;&lt;script&gt;\\u202ex"));
        assert!(html.len() < TEXT_CHARACTERS_MAX + 100, "{}", html.len());
    }

    #[test]
    fn long_table_counts_its_hidden_rows() {
        let rows = |count: usize| vec![table_row(&["cell".to_owned()]); count];
        let long = table(&["name"], rows(ROWS_MAX + 3)).unwrap();
        assert!(long.ends_with("</table><p>3 more rows</p>"), "{long}");
        assert_eq!(long.matches("<td>").count(), ROWS_MAX);
        let short = table(&["name"], rows(ROWS_MAX)).unwrap();
        assert!(short.ends_with("</table>"), "{short}");
    }
}
