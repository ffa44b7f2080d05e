//! Lines of CSV.

/// Returns a line with its line feed. Each cell is quoted if it must be.
pub fn csv_line<I>(cells: I) -> String
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let cells = cells.into_iter().map(|cell| text_cell(cell.as_ref()));
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// Returns a cell of CSV, quoted where RFC 4180 requires it.
///
/// A spreadsheet takes text that begins with `=`, `+`, `-` or `@` for a formula, even if quoted. A
/// formula can run programs and send cells away. A leading apostrophe, which spreadsheets do not
/// show, marks it as text. Numbers stay.
fn text_cell(text: &str) -> String {
    let defused = match begins_formula(text) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match defused.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", defused.replace('"', "\"\"")),
        false => defused,
    }
}

/// Some spreadsheets skip leading spaces and control characters, and accept full-width signs.
fn begins_formula(text: &str) -> bool {
    let is_skipped = |character: char| character.is_whitespace() || character.is_control();
    let begins = |text: &str| text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    begins(text.trim_start_matches(is_skipped)) && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::{csv_line, text_cell};

    #[test]
    fn cell_with_a_comma_a_quote_or_an_end_of_line_is_quoted() {
        for (text, cell) in [
            ("", ""),
            ("/data", "/data"),
            ("/a,b", "\"/a,b\""),
            ("/a\"b", "\"/a\"\"b\""),
            ("a\nb", "\"a\nb\""),
            ("a\rb", "\"a\rb\""),
        ] {
            assert_eq!(text_cell(text), cell);
        }
    }

    #[test]
    fn text_that_begins_a_formula_gets_an_apostrophe() {
        for text in [
            "=1+1",
            "+cmd|' /C calc'!A0",
            "-2+3+cmd",
            "@SUM(A1)",
            "\t=1",
            " =1",
            "\u{1b}=1",
            "＝1",
        ] {
            assert_eq!(text_cell(text), format!("'{text}"));
        }
        assert_eq!(text_cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(text_cell("\r=1"), "\"'\r=1\"");
    }

    #[test]
    fn line_quotes_each_cell_and_ends_with_a_line_feed() {
        assert_eq!(csv_line(["a,b", "-1.5", "", "=1"]), "\"a,b\",-1.5,,'=1\n");
        assert_eq!(csv_line([String::new()]), "\n");
    }

    #[test]
    fn number_and_other_text_stay() {
        for text in [
            "-3.5",
            "+4",
            "-1e-3",
            "NaN",
            "-inf",
            "a=b",
            "4k-64k",
            "'",
            "user@host",
        ] {
            assert_eq!(text_cell(text), text);
        }
    }
}
