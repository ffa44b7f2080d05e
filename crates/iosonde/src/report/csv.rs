//! Texts as cells of CSV.

/// A cell of CSV, in quotes where RFC 4180 demands them.
///
/// A spreadsheet takes a text that begins with `=`, `+`, `-` or `@` for a formula, even where the cell is in quotes. A formula may start
/// programs and send other cells away. Such a text gets an apostrophe in front of it, the mark of a text, which spreadsheets do not
/// show. A number stays a number. Labels and names come from others; cells that iosonde computes need no check.
pub(crate) fn text_cell(text: &str) -> String {
    let defused = match begins_formula(text) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match defused.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", defused.replace('"', "\"\"")),
        false => defused,
    }
}

/// Some spreadsheets leave out spaces and control characters at the beginning, and take full-width signs for the usual ones.
fn begins_formula(text: &str) -> bool {
    let is_skipped = |character: char| character.is_whitespace() || character.is_control();
    let begins = |text: &str| text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    begins(text.trim_start_matches(is_skipped)) && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::text_cell;

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
    fn number_and_other_text_stay() {
        for text in ["-3.5", "+4", "-1e-3", "a=b", "4k-64k", "'", "user@host"] {
            assert_eq!(text_cell(text), text);
        }
    }
}
