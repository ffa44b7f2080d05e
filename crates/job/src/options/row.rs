//! A row of the option table.

use super::{JobBuilder, OptionValue};
use crate::value::{ParsedValue, TimeUnit};

/// The subject of an option, and its chapter in the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantArray))]
pub enum OptionFamily {
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

impl OptionFamily {
    /// All families, in the order of the documentation.
    pub const ALL: [OptionFamily; 10] = [
        OptionFamily::What,
        OptionFamily::Files,
        OptionFamily::How,
        OptionFamily::When,
        OptionFamily::Measure,
        OptionFamily::Verify,
        OptionFamily::Engine,
        OptionFamily::Ceph,
        OptionFamily::Other,
        OptionFamily::Later,
    ];

    /// Returns the heading in the documentation.
    pub fn title(self) -> &'static str {
        match self {
            OptionFamily::What => "What is done",
            OptionFamily::Files => "Location of the data",
            OptionFamily::How => "How I/O is issued",
            OptionFamily::When => "When, and how fast",
            OptionFamily::Measure => "What is measured and reported",
            OptionFamily::Verify => "Verification",
            OptionFamily::Engine => "Options of single engines",
            OptionFamily::Ceph => "Options of the Ceph engines",
            OptionFamily::Other => "Other options of fio",
            OptionFamily::Later => "Options of fio after 3.33",
        }
    }
}

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind {
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

impl ValueKind {
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
            ValueKind::Text => "text".into(),
            ValueKind::OptionalText => "text, may be left out".into(),
            ValueKind::Flag => "no value, or 0 or 1".into(),
            ValueKind::Bool => "0 or 1".into(),
            ValueKind::Int(min, max) => bounds(min, max),
            ValueKind::IntList(min, max) => format!("{}; read,write,trim", bounds(min, max)),
            ValueKind::Size => "size".into(),
            ValueKind::SizeList => "size; read,write,trim".into(),
            ValueKind::Extent => "size, or per cent".into(),
            ValueKind::SizeRange => "size, or low-high".into(),
            ValueKind::SizeRangeList => "low-high; read,write,trim".into(),
            ValueKind::Percent => "per cent".into(),
            ValueKind::PercentList => "per cent; read,write,trim".into(),
            ValueKind::Time(default) => format!("time, in {} without unit", unit(default)),
            ValueKind::TimeList(default) => {
                format!("time, in {} without unit; read,write,trim", unit(default))
            }
            ValueKind::TimeRange(default) => {
                format!("time or low-high, in {} without unit", unit(default))
            }
            ValueKind::Float => "number".into(),
            ValueKind::FloatList => "numbers, separated by colons".into(),
            ValueKind::Choice(words) => format!("one of {}", words.join(", ")),
            ValueKind::Words(words, more) => format!("one of {}{more}", words.join(", ")),
            ValueKind::List => "texts, separated by colons".into(),
            ValueKind::Numbers => "numbers and ranges, e.g. 0,2-5".into(),
            ValueKind::Pattern => "bytes: 0xdeadbeef, \"text\", numbers, 'file'".into(),
        }
    }
}

/// The support of an option, compared with fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionSupport {
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
pub type ApplyJobOption = fn(&mut JobBuilder, &OptionValue<'_>) -> ParsedValue<()>;

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// The name in fio's JSON.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Form of the value.
    pub kind: ValueKind,
    /// Value if the option is not given; "" is none.
    pub default: &'static str,
    /// Description in one or two sentences.
    pub doc: &'static str,
    /// Support, compared with fio.
    pub status: OptionSupport,
    /// Engines that have the option; empty is all.
    pub engines: &'static [&'static str],
    /// Applies the option to the job.
    pub apply: ApplyJobOption,
}

impl OptionRow {
    /// Makes a supported option.
    pub const fn new(
        name: &'static str,
        kind: ValueKind,
        default: &'static str,
        doc: &'static str,
        apply: ApplyJobOption,
    ) -> Self {
        OptionRow {
            name,
            aliases: &[],
            kind,
            default,
            doc,
            status: OptionSupport::Supported,
            engines: &[],
            apply,
        }
    }

    /// Makes an option of fio that iosonde refuses.
    pub const fn unsupported(
        name: &'static str,
        kind: ValueKind,
        default: &'static str,
        doc: &'static str,
        reason: &'static str,
        instead: &'static str,
    ) -> Self {
        OptionRow {
            status: OptionSupport::Unsupported { reason, instead },
            ..OptionRow::new(name, kind, default, doc, |_, _| Ok(()))
        }
    }

    /// Adds aliases.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        OptionRow { aliases, ..self }
    }

    /// Marks the option as read, with a meaning other than in fio.
    pub const fn accepted(self, meaning: &'static str) -> Self {
        OptionRow {
            status: OptionSupport::Accepted(meaning),
            ..self
        }
    }

    /// Limits the option to some engines.
    pub const fn engines(self, engines: &'static [&'static str]) -> Self {
        OptionRow { engines, ..self }
    }

    /// Returns the name and aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether the option is newer than the fio version that iosonde follows. Command lines of that
    /// version do not know it.
    pub fn is_later(&self) -> bool {
        match self.status {
            OptionSupport::Unsupported { reason, .. } => {
                super::later_reasons::REASONS.contains(&reason)
            }
            _ => false,
        }
    }

    /// Whether the value equals the default, so that an unsupported option may be ignored.
    pub(crate) fn is_harmless(&self, value: Option<&str>) -> bool {
        match value {
            Some(value) => !self.default.is_empty() && value == self.default,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn families_are_listed_in_their_order() {
        assert_eq!(OptionFamily::ALL, OptionFamily::VARIANTS);
    }
}
