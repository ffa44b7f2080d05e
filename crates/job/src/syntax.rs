//! Parses job files and command lines into entries: names and values with their spans, not yet
//! interpreted.

pub mod command_line;
pub mod expand;
pub mod ini;

use crate::source::{Span, Spanned};

/// One option as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionEntry {
    /// The name, left of the equals sign.
    pub name: Spanned,
    /// The value, right of the equals sign; `None` if there is no equals sign.
    pub value: Option<Spanned>,
    /// Unset environment variables of the entry. As in fio, they expand to nothing.
    pub unset_vars: Vec<String>,
}

impl OptionEntry {
    /// Returns the span of the whole option.
    pub fn span(&self) -> Span {
        let name = self.name.span;
        let end = self.value.as_ref().map_or(name.end, |value| value.span.end);
        Span {
            end: end.max(name.end),
            ..name
        }
    }
}

/// The kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionKind {
    /// Sets defaults for later jobs.
    Global,
    /// Defines a job.
    Job,
}

/// A `[section]`, or a `--name` group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Kind of the section.
    pub kind: SectionKind,
    /// Name of the section.
    pub name: Spanned,
    /// Options in the order of the text.
    pub entries: Vec<OptionEntry>,
    /// Whether the section comes from a command line. If so, all options are applied in their
    /// order, including `kb_base`.
    pub in_order: bool,
}

impl Section {
    /// Makes an empty section. As in fio, every name that starts with `global` makes a global
    /// section.
    pub fn new(name: Spanned) -> Self {
        let kind = if name.text.starts_with("global") {
            SectionKind::Global
        } else {
            SectionKind::Job
        };
        Section {
            kind,
            name,
            entries: Vec::new(),
            in_order: false,
        }
    }

    /// Makes an empty section of a command line.
    pub(crate) fn from_command_line(name: Spanned) -> Self {
        Section {
            in_order: true,
            ..Section::new(name)
        }
    }
}
