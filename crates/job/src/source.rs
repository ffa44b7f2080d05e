//! Source texts of options, and positions in them.
//!
//! Every word of a user keeps its [`Span`], so that an error can show the line that causes it.

use std::ops::Range;

/// A text that contains options: a job file, or the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Path of the file, or `command line`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A range of bytes in one of the [`SourceTexts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Index of the source.
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A line and column, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineColumn {
    /// Line number.
    pub line: usize,
    /// Character in the line.
    pub column: usize,
}

/// All source texts of one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceTexts {
    list: Vec<SourceText>,
}

impl SourceTexts {
    /// Adds a text and returns its index.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.list.push(SourceText {
            name: name.into(),
            text: text.into(),
        });
        self.list.len() - 1
    }

    /// Returns the source with this index, if there is one.
    pub fn get(&self, index: usize) -> Option<&SourceText> {
        self.list.get(index)
    }

    /// Returns the text of a span; empty if the span lies outside of its source.
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.source)
            .and_then(|source| source.text.get(span.start..span.end))
            .unwrap_or("")
    }

    /// Returns the start of a span.
    pub fn position(&self, span: Span) -> LineColumn {
        let before = self
            .get(span.source)
            .and_then(|source| source.text.get(..span.start))
            .unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        LineColumn {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A word or value with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned {
    /// The text after expansion of variables.
    pub text: String,
    /// The span of the text before expansion, in its source.
    pub span: Span,
    /// Whether `text` equals the text at `span`, so that spans of its parts are exact.
    pub verbatim: bool,
}

impl Spanned {
    /// Makes a text that equals the text of its span.
    pub(crate) fn verbatim(text: impl Into<String>, span: Span) -> Self {
        Spanned {
            text: text.into(),
            span,
            verbatim: true,
        }
    }

    /// Returns the span of a part of the text, or the whole span if the text was expanded.
    pub fn part(&self, range: Range<usize>) -> Span {
        if self.verbatim && range.end <= self.text.len() && range.start < range.end {
            Span {
                source: self.span.source,
                start: self.span.start + range.start,
                end: self.span.start + range.end,
            }
        } else {
            self.span
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let mut sources = SourceTexts::default();
        let source = sources.add("a.fio", "[a]\nbs=4k\nname=öx\n");
        let at = |start, end| Span { source, start, end };
        assert_eq!(
            sources.position(at(0, 3)),
            LineColumn { line: 1, column: 1 }
        );
        assert_eq!(
            sources.position(at(7, 9)),
            LineColumn { line: 2, column: 4 }
        );
        assert_eq!(sources.slice(at(7, 9)), "4k");
        let x = sources.get(source).unwrap().text.find('x').unwrap();
        assert_eq!(sources.position(at(x, x + 1)).column, 7);
    }

    #[test]
    fn part_of_expanded_value_has_the_whole_span() {
        let span = Span {
            source: 0,
            start: 10,
            end: 14,
        };
        let mut value = Spanned::verbatim("4k,x", span);
        assert_eq!((value.part(3..4).start, value.part(3..4).end), (13, 14));
        value.verbatim = false;
        assert_eq!(value.part(3..4), span);
    }
}
