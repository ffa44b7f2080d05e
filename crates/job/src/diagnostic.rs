//! Errors and warnings, shown with the source line that causes them.
//!
//! Parsing collects all errors and warnings before it fails, so that a user can correct a job file
//! at once.

mod cause_text;
#[cfg(test)]
mod cause_text_tests;
mod diagnostic_cause;

pub(crate) use diagnostic_cause::{
    DiagnosticCause, EngineConflict, JobListProblem, OptionConflict, OptionProblem, SyntaxProblem,
    VerifyConflict,
};

use crate::source::{SourceTexts, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosticSeverity {
    /// The job runs, but possibly not as intended.
    Warning,
    /// Nothing runs.
    Error,
}

/// One error or warning for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: DiagnosticSeverity,
    /// The problem, in one line.
    pub message: String,
    /// The span that causes the diagnostic.
    pub span: Option<Span>,
    /// Text under the underlined span.
    pub label: String,
    /// Actions that correct the problem.
    pub help: Vec<String>,
    /// The cause as data. `None` for errors of documents that only contain options of fio, such as
    /// suites, whose crates have words of their own.
    pub(crate) cause: Option<Box<DiagnosticCause>>,
}

impl Diagnostic {
    /// Makes an error.
    pub fn error(message: impl Into<String>) -> Self {
        Diagnostic {
            severity: DiagnosticSeverity::Error,
            message: message.into(),
            span: None,
            label: String::new(),
            help: Vec::new(),
            cause: None,
        }
    }

    /// Makes the error of a cause, with the message and the help of that cause.
    pub(crate) fn error_from(cause: impl Into<DiagnosticCause>) -> Self {
        let cause = cause.into();
        let mut error = Diagnostic::error(cause.message());
        error.help.extend(cause.help());
        error.cause = Some(Box::new(cause));
        error
    }

    /// Makes the warning of a cause, with the message and the help of that cause.
    pub(crate) fn warning_from(cause: impl Into<DiagnosticCause>) -> Self {
        Diagnostic {
            severity: DiagnosticSeverity::Warning,
            ..Diagnostic::error_from(cause)
        }
    }

    /// Makes the error of an option that does not exist.
    pub fn unknown_option(name: &str) -> Self {
        let name = name.to_owned();
        Diagnostic::error_from(OptionProblem::Unknown { name })
    }

    /// Whether the problem is an option that does not exist.
    #[must_use]
    pub fn is_unknown_option(&self) -> bool {
        let unknown = |cause: &DiagnosticCause| {
            matches!(
                cause,
                DiagnosticCause::Option(OptionProblem::Unknown { .. })
            )
        };
        self.cause.as_deref().is_some_and(unknown)
    }

    /// Sets the span.
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Sets the text under the underlined span.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a line of help.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}

/// All diagnostics, with the texts that cause them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The texts.
    pub sources: SourceTexts,
    /// The diagnostics.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|diagnostic| diagnostic.severity == DiagnosticSeverity::Error)
    }

    /// Sorts the diagnostics by source and position. Diagnostics without a span come last.
    pub fn sort(&mut self) {
        let place = |diagnostic: &Diagnostic| match diagnostic.span {
            Some(span) => (span.source, span.start),
            None => (usize::MAX, usize::MAX),
        };
        self.list.sort_by_key(place);
    }

    /// Turns every warning into an error (`--warnings-fatal`).
    pub(crate) fn promote_warnings(&mut self) {
        for diagnostic in &mut self.list {
            diagnostic.severity = DiagnosticSeverity::Error;
        }
    }

    /// Returns the text for the user: each diagnostic with its file, line, column and underlined
    /// text.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color {
            Renderer::styled().decor_style(DecorStyle::Unicode)
        } else {
            Renderer::plain().decor_style(DecorStyle::Ascii)
        };
        let mut rendered = String::new();
        for diagnostic in &self.list {
            rendered.push_str(&renderer.render(&[self.group(diagnostic)]));
            rendered.push_str("\n\n");
        }
        rendered.truncate(rendered.trim_end().len());
        rendered
    }

    /// Returns each diagnostic as one line without its source text: position, message, help.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |diagnostic: &Diagnostic| {
            let place = diagnostic.span.and_then(|span| {
                let source = self.sources.get(span.source)?;
                let line = self.sources.position(span).line;
                // A command line has one line, so its number is omitted.
                let line = source.text.contains('\n').then(|| format!(":{line}"));
                Some(format!("{}{}: ", source.name, line.unwrap_or_default()))
            });
            let parts = std::iter::once(&diagnostic.message).chain(&diagnostic.help);
            let parts: Vec<&str> = parts.map(String::as_str).collect();
            place.unwrap_or_default() + &parts.join("; ")
        };
        self.list.iter().map(sentence).collect()
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            DiagnosticSeverity::Error => Level::ERROR,
            DiagnosticSeverity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()));
        if let Some((source, span)) = diagnostic
            .span
            .and_then(|span| Some((self.sources.get(span.source)?, span)))
        {
            let mut annotation = AnnotationKind::Primary.span(span.start..span.end);
            if !diagnostic.label.is_empty() {
                annotation = annotation.label(diagnostic.label.as_str());
            }
            group = group.element(
                Snippet::source(source.text.as_str())
                    .path(source.name.as_str())
                    .annotation(annotation),
            );
        }
        group.elements(
            diagnostic
                .help
                .iter()
                .map(|help| Level::HELP.message(help.as_str())),
        )
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// Returns the candidate closest to a mistyped word, if the edit distance is at most a third of its
/// length (1 to 3).
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_file_line_column_and_underlines_the_text() {
        let mut all = Diagnostics::default();
        let source = all.sources.add("test.fio", "[a]\nrw=randraed\n");
        all.push(
            Diagnostic::error("no such value of rw: `randraed`")
                .at(Span {
                    source,
                    start: 7,
                    end: 15,
                })
                .label("not a value of rw")
                .help("did you mean `randread`?"),
        );
        insta::assert_snapshot!(all.render(false), @r"
        error: no such value of rw: `randraed`
         --> test.fio:2:4
          |
        2 | rw=randraed
          |    ^^^^^^^^ not a value of rw
          |
          = help: did you mean `randread`?
        ");
    }

    #[test]
    fn nearest_word_is_found_for_a_typo() {
        let words = ["iodepth", "bs", "direct", "runtime"];
        assert_eq!(nearest("iodpeth", words), Some("iodepth"));
        assert_eq!(nearest("IODEPTH", words), Some("iodepth"));
        assert_eq!(nearest("zzzzzz", words), None);
    }
}
