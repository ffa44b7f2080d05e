//! Job files and command lines to entries that know where they stand and nothing of what they mean.

pub mod command_line;
pub mod expand;
pub mod ini;

use crate::source::{Span, Spanned};

/// One option as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What stands left of the equals sign.
    pub name: Spanned,
    /// What stands right of it; `None` if there is no equals sign.
    pub value: Option<Spanned>,
    /// Environment variables in it that are not set; they expand to nothing, as in fio.
    pub unset_vars: Vec<String>,
}

impl Entry {
    /// The place of the whole option.
    pub fn span(&self) -> Span {
        let name = self.name.span;
        let end = self.value.as_ref().map_or(name.end, |value| value.span.end);
        Span {
            end: end.max(name.end),
            ..name
        }
    }
}

/// What a section is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionKind {
    /// Sets defaults for the jobs behind it.
    Global,
    /// Is a job.
    Job,
}

/// A `[section]`, or a `--name` group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Whether it is a job.
    pub kind: SectionKind,
    /// Its name.
    pub name: Spanned,
    /// Its options in the order they were written.
    pub entries: Vec<Entry>,
    /// Whether it is of a command line: options are then applied in their order, `kb_base` too.
    pub in_order: bool,
}

impl Section {
    /// An empty section; fio takes every name that starts with `global` for a global one.
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

    /// The same of a command line.
    pub fn of_command_line(name: Spanned) -> Self {
        Section {
            in_order: true,
            ..Section::new(name)
        }
    }
}
