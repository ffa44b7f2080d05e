//! Positions in a YAML text, from lines and columns to bytes.

use iosonde_job::source::Span;

/// Bytes of the characters and lines of a text. A lookup does not depend on the text's length.
pub(super) struct YamlPositions {
    source: usize,
    /// First byte of each character, and the length of the text.
    char_starts: Vec<usize>,
    lines: Vec<LineExtent>,
}

/// Extent of one line.
struct LineExtent {
    /// Index of its first character in the text.
    first_char: usize,
    /// Number of its characters, with those of the line break.
    chars: usize,
    /// Byte after the line without its line break.
    end: usize,
}

impl YamlPositions {
    pub(super) fn of_text(source: usize, text: &str) -> YamlPositions {
        let starts = text.char_indices().map(|(start, _)| start);
        let char_starts: Vec<usize> = starts.chain([text.len()]).collect();
        let mut lines = Vec::new();
        let (mut first_char, mut start) = (0, 0);
        for line in text.split_inclusive('\n') {
            let chars = line.chars().count();
            lines.push(LineExtent {
                first_char,
                chars,
                end: start + line.trim_end_matches(['\n', '\r']).len(),
            });
            first_char += chars;
            start += line.len();
        }
        debug_assert_eq!(
            first_char + 1,
            char_starts.len(),
            "lines hold all characters"
        );
        YamlPositions {
            source,
            char_starts,
            lines,
        }
    }

    /// The span from a position to the end of its line: the parser does not always report the end
    /// of a value. A column beyond the line means its start.
    pub(super) fn span(&self, at: &serde_saphyr::Location) -> Span {
        self.span_at(at.line() as usize, at.column() as usize)
    }

    /// The span of a line and a column, both from 1.
    fn span_at(&self, line: usize, column: usize) -> Span {
        let place = |start: usize, end: usize| Span {
            source: self.source,
            start,
            end: end.max(start),
        };
        let Some(line) = self.lines.get(line.max(1) - 1) else {
            let end = self.char_starts[self.char_starts.len() - 1];
            return place(end, end);
        };
        let column = column.max(1) - 1;
        let within = if column < line.chars { column } else { 0 };
        place(self.char_starts[line.first_char + within], line.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_up_to_line_end() {
        let text = "a: ü\r\n\n  日b: 1";
        let positions = YamlPositions::of_text(0, text);
        let at = |line, column| {
            let span = positions.span_at(line, column);
            &text[span.start..span.end]
        };
        assert_eq!(at(1, 1), "a: ü");
        assert_eq!(at(1, 4), "ü");
        assert_eq!(at(1, 6), "", "the line break");
        assert_eq!(at(2, 1), "");
        assert_eq!(at(3, 3), "日b: 1");
        assert_eq!(at(3, 4), "b: 1");
        assert_eq!(at(3, 99), "  日b: 1", "no such column");
        let behind = positions.span_at(4, 1);
        assert_eq!((behind.start, behind.end), (text.len(), text.len()));
        assert_eq!(at(0, 0), "a: ü", "an unknown position");
    }
}
