//! Parses the values of options: sizes, times, percentages, lists, ranges, mixes, patterns.
//!
//! Every function takes a text and returns the value, or a [`ValueError`] with the wrong part.

pub mod expression;
pub mod list;
pub mod number;
pub mod pattern;
pub(crate) use pattern::MAX_PATTERN_BYTES;
pub mod split;

pub use list::{colons, cpu_list, directions, node_list, number_list, ranges};
pub use number::{
    Bytes, TimeUnit, before_percent_sign, boolean, bytes, extent, float, integer, percent,
    signed_bytes, time_ns,
};
pub use pattern::{pattern, pattern_with_fields};
pub use split::{block_sizes, byte_zones, percent_zones};

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
pub type Parsed<T> = Result<T, ValueError>;
