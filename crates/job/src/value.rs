//! Parses the values of options: sizes, times, percentages, lists, ranges, mixes, patterns.
//!
//! Every function takes a text and returns the value, or a [`ValueError`] with the wrong part.

pub mod expression;
pub mod list;
pub mod number;
pub mod pattern;
pub(crate) use pattern::MAX_PATTERN_BYTES;
pub mod split;

pub(crate) use list::{colons, node_list, number_list};
pub use list::{cpu_list, directions, ranges};
pub use number::{
    Bytes, TimeUnit, boolean, bytes, extent, float, greatest_common_divisor, integer, percent,
    time_ns,
};
pub(crate) use number::{before_percent_sign, signed_bytes};
pub use pattern::pattern;
pub(crate) use pattern::pattern_with_fields;
pub(crate) use split::byte_zones;
pub use split::{block_sizes, percent_zones};

use std::ops::Range;

/// An error in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// The message in one sentence, without the option's name.
    pub message: String,
    /// The wrong bytes of the value; `None` is the whole value.
    pub part: Option<Range<usize>>,
    /// A value that would be accepted.
    pub help: Option<String>,
}

impl ValueError {
    /// Makes an error about the whole value.
    pub fn new(message: impl Into<String>) -> Self {
        ValueError {
            message: message.into(),
            part: None,
            help: None,
        }
    }

    /// Adds help.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the wrong part of `whole`. Both must be slices of one text.
    pub fn within(mut self, whole: &str, part: &str) -> Self {
        let offset = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        if offset <= whole.len() && offset + part.len() <= whole.len() {
            let inner = self.part.take().unwrap_or(0..part.len());
            self.part = Some(offset + inner.start..offset + inner.end);
        }
        self
    }
}

/// A value, or the error in its text.
pub type ParsedValue<T> = Result<T, ValueError>;
