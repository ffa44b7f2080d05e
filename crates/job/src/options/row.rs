//! A row of the option table.

use super::{Builder, Given};
use crate::value::{Parsed, TimeUnit};

/// The subject of an option, and its chapter in the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Directions, block sizes, order, contents.
    What,
    /// Files and devices.
    Files,
    /// Engine, depth, memory, CPUs.
    How,
    /// Time, rates, order of jobs.
    When,
    /// Statistics, logs, reports, errors.
    Measure,
    /// Verification of contents.
    Verify,
    /// Engine-specific options.
    Engine,
    /// Options of the Ceph engines.
    Ceph,
    /// Traces, cgroups, zoned devices, and fio's remaining options.
    Other,
    /// Options of fio after 3.33.
    Later,
}

impl Family {
    /// All families, in the order of the documentation.
    pub const ALL: [Family; 10] = [
        Family::What,
        Family::Files,
        Family::How,
        Family::When,
        Family::Measure,
        Family::Verify,
        Family::Engine,
        Family::Ceph,
        Family::Other,
        Family::Later,
    ];

    /// Returns the heading in the documentation.
    pub fn title(self) -> &'static str {
        match self {
            Family::What => "What is done",
            Family::Files => "Where the data are",
            Family::How => "How I/O is issued",
            Family::When => "When, and how fast",
            Family::Measure => "What is measured and reported",
            Family::Verify => "Verification",
            Family::Engine => "Options of single engines",
            Family::Ceph => "Options of the Ceph engines",
            Family::Other => "Other options of fio",
            Family::Later => "Options of fio after 3.33",
        }
    }
}

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// An optional text.
    OptionalText,
    /// On without a value; `=0` and `=1` are possible.
    Flag,
    /// 0 or 1.
    Bool,
    /// An integer within bounds.
    Int(i64, i64),
    /// Integers for reads, writes and trims.
    IntList(i64, i64),
    /// Bytes.
    Size,
    /// Bytes for reads, writes and trims.
    SizeList,
    /// Bytes, or per cent.
    Extent,
    /// A range of bytes.
    SizeRange,
    /// Ranges of bytes for reads, writes and trims.
    SizeRangeList,
    /// 0 to 100.
    Percent,
    /// 0 to 100, for reads, writes and trims.
    PercentList,
    /// A time, with the unit of a number without suffix.
    Time(TimeUnit),
    /// Times for reads, writes and trims.
    TimeList(TimeUnit),
    /// A range of times.
    TimeRange(TimeUnit),
    /// A decimal fraction.
    Float,
    /// Decimal fractions, separated by colons.
    FloatList,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, and a description of the text that may follow.
    Words(&'static [&'static str], &'static str),
    /// Texts, separated by colons.
    List,
    /// CPU or node numbers.
    Numbers,
    /// Bytes in fio's pattern notation.
    Pattern,
}

impl Kind {
    /// Describes the form in words, for help and documentation.
    pub fn describe(self) -> String {
        let unit = |unit| match unit {
            TimeUnit::Seconds => "seconds",
            TimeUnit::Milliseconds => "milliseconds",
            TimeUnit::Microseconds => "microseconds",
        };
        let bounds = |min, max| match (min, max) {
            (i64::MIN, _) => "whole number".to_owned(),
            (min, max) if max >= i64::from(u32::MAX) => format!("whole number from {min}"),
            (min, max) => format!("whole number, {min} to {max}"),
        };
        match self {
            Kind::Text => "text".into(),
            Kind::OptionalText => "text, may be left out".into(),
            Kind::Flag => "stands alone, or 0 or 1".into(),
            Kind::Bool => "0 or 1".into(),
            Kind::Int(min, max) => bounds(min, max),
            Kind::IntList(min, max) => format!("{}; read,write,trim", bounds(min, max)),
            Kind::Size => "size".into(),
            Kind::SizeList => "size; read,write,trim".into(),
            Kind::Extent => "size, or per cent".into(),
            Kind::SizeRange => "size, or low-high".into(),
            Kind::SizeRangeList => "low-high; read,write,trim".into(),
            Kind::Percent => "per cent".into(),
            Kind::PercentList => "per cent; read,write,trim".into(),
            Kind::Time(default) => format!("time, in {} without unit", unit(default)),
            Kind::TimeList(default) => {
                format!("time, in {} without unit; read,write,trim", unit(default))
            }
            Kind::TimeRange(default) => {
                format!("time or low-high, in {} without unit", unit(default))
            }
            Kind::Float => "number".into(),
            Kind::FloatList => "numbers, separated by colons".into(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Words(words, more) => format!("one of {}{more}", words.join(", ")),
            Kind::List => "texts, separated by colons".into(),
            Kind::Numbers => "numbers and ranges, e.g. 0,2-5".into(),
            Kind::Pattern => "bytes: 0xdeadbeef, \"text\", numbers, 'file'".into(),
        }
    }
}

/// The support of an option, compared with fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Has the same meaning as in fio.
    Supported,
    /// Is read, and has this meaning in iosonde.
    Accepted(&'static str),
    /// Is refused, unless the value is the default.
    Unsupported {
        /// The reason.
        reason: &'static str,
        /// The nearest alternative; "" if there is none.
        instead: &'static str,
    },
}

/// Applies an option to the job under construction.
pub type Apply = fn(&mut Builder, &Given<'_>) -> Parsed<()>;

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name in fio's JSON.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Form of the value.
    pub kind: Kind,
    /// Value if the option is not given; "" is none.
    pub default: &'static str,
    /// Description in one or two sentences.
    pub doc: &'static str,
    /// Support, compared with fio.
    pub status: Status,
    /// Engines that have the option; empty is all.
    pub engines: &'static [&'static str],
    /// Applies the option to the job.
    pub apply: Apply,
}

impl Row {
    /// Makes a supported option.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
        apply: Apply,
    ) -> Self {
        Row {
            name,
            aliases: &[],
            kind,
            default,
            doc,
            status: Status::Supported,
            engines: &[],
            apply,
        }
    }

    /// Makes an option of fio that iosonde refuses.
    pub const fn unsupported(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
        reason: &'static str,
        instead: &'static str,
    ) -> Self {
        Row {
            status: Status::Unsupported { reason, instead },
            ..Row::new(name, kind, default, doc, |_, _| Ok(()))
        }
    }

    /// Adds aliases.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Row { aliases, ..self }
    }

    /// Marks the option as read, with a meaning other than in fio.
    pub const fn accepted(self, meaning: &'static str) -> Self {
        Row {
            status: Status::Accepted(meaning),
            ..self
        }
    }

    /// Limits the option to some engines.
    pub const fn engines(self, engines: &'static [&'static str]) -> Self {
        Row { engines, ..self }
    }

    /// Returns the name and aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether the option is newer than the fio version that iosonde follows. Command lines of that
    /// version do not know it.
    pub fn is_later(&self) -> bool {
        matches!(self.status, Status::Unsupported { reason, .. } if super::later::REASONS.contains(&reason))
    }

    /// Whether the value equals the default, so that an unsupported option may be ignored.
    pub fn is_harmless(&self, value: Option<&str>) -> bool {
        match value {
            Some(value) => !self.default.is_empty() && value == self.default,
            None => false,
        }
    }
}
