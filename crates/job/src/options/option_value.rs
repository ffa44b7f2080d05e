//! The value of an option, and the ways to read it into a field of a job.

use crate::diagnostic::nearest;
use crate::env::Env;
use crate::plan::{BytesOrPercent, PerDirection};
use crate::value::{self, Bytes, ParsedValue, TimeUnit, ValueError};
use std::ops::RangeInclusive;

/// The text of a value, and the environment in which the value is read.
#[derive(Clone, Copy)]
pub struct OptionValue<'a> {
    /// The text; `None` if the option has no value.
    pub text: Option<&'a str>,
    /// Reads files that patterns name.
    pub env: &'a dyn Env,
}

impl<'a> OptionValue<'a> {
    /// Returns the text; "" if the option has no value.
    pub fn str(&self) -> &'a str {
        self.text.unwrap_or("")
    }

    /// Stores the text unchanged.
    pub(crate) fn text_to(&self, target: &mut Option<String>) -> ParsedValue<()> {
        *target = Some(self.str().to_owned());
        Ok(())
    }

    /// Reads a flag: on if the option has no value or its number is not 0.
    pub fn flag(&self) -> ParsedValue<bool> {
        match self.text {
            None => Ok(true),
            Some(text) => match value::integer(text) {
                Ok(number) => Ok(number != 0),
                Err(_) => value::boolean(text),
            },
        }
    }

    /// Reads and stores a flag.
    pub(crate) fn flag_to(&self, target: &mut bool) -> ParsedValue<()> {
        *target = self.flag()?;
        Ok(())
    }

    /// Reads 0 or 1.
    pub fn bool(&self) -> ParsedValue<bool> {
        value::boolean(self.str())
    }

    /// Reads 0 or 1 and stores it.
    pub(crate) fn bool_to(&self, target: &mut bool) -> ParsedValue<()> {
        *target = self.bool()?;
        Ok(())
    }

    /// Reads 0 or 1 and stores the opposite.
    pub(crate) fn not_bool_to(&self, target: &mut bool) -> ParsedValue<()> {
        *target = !self.bool()?;
        Ok(())
    }

    /// Reads an integer within bounds.
    pub(crate) fn int(&self, bounds: RangeInclusive<i64>) -> ParsedValue<i64> {
        bounded(self.str(), &bounds)
    }

    /// Reads and stores a 32-bit count.
    pub(crate) fn u32_to(&self, target: &mut u32, min: u32) -> ParsedValue<()> {
        *target = self.int(i64::from(min)..=i64::from(u32::MAX))? as u32;
        Ok(())
    }

    /// Reads and stores a 64-bit count.
    pub(crate) fn u64_to(&self, target: &mut u64, min: i64) -> ParsedValue<()> {
        *target = self.int(min..=i64::MAX)? as u64;
        Ok(())
    }

    /// Reads and stores a size in bytes.
    pub(crate) fn bytes_to(&self, target: &mut u64, base: Bytes) -> ParsedValue<()> {
        *target = value::bytes(self.str(), base)?;
        Ok(())
    }

    /// Reads and stores a size in bytes or per cent.
    pub(crate) fn extent_to(&self, target: &mut BytesOrPercent, base: Bytes) -> ParsedValue<()> {
        *target = value::extent(self.str(), base)?;
        Ok(())
    }

    /// Reads and stores a percentage.
    pub(crate) fn percent_to(&self, target: &mut u8) -> ParsedValue<()> {
        *target = value::percent(self.str())?;
        Ok(())
    }

    /// Reads and stores a percentage for each direction.
    pub(crate) fn percents_to(&self, target: &mut PerDirection<u8>) -> ParsedValue<()> {
        value::directions(self.str(), target, value::percent)
    }

    /// Reads and stores a positive rate for each direction; 0 is none.
    pub(crate) fn rates_to(
        &self,
        target: &mut PerDirection<Option<u64>>,
        base: Bytes,
    ) -> ParsedValue<()> {
        value::directions(self.str(), target, |part| {
            Ok(Some(value::bytes(part, base)?).filter(|rate| *rate > 0))
        })
    }

    /// Reads a time, in nanoseconds.
    pub fn time(&self, unit: TimeUnit) -> ParsedValue<u64> {
        value::time_ns(self.str(), unit)
    }

    /// Reads and stores a time, in nanoseconds.
    pub(crate) fn time_to(&self, target: &mut u64, unit: TimeUnit) -> ParsedValue<()> {
        *target = self.time(unit)?;
        Ok(())
    }

    /// Reads one of several words and returns its meaning.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> ParsedValue<T> {
        choice(self.str(), choices)
    }

    /// Reads one of several words and stores its meaning.
    pub(crate) fn choice_to<T: Copy>(
        &self,
        target: &mut T,
        choices: &[(&str, T)],
    ) -> ParsedValue<()> {
        *target = self.choice(choices)?;
        Ok(())
    }
}

/// Returns the meaning of a word; the error lists the possible words.
pub fn choice<T: Copy>(word: &str, choices: &[(&str, T)]) -> ParsedValue<T> {
    if let Some((_, meaning)) = choices.iter().find(|(name, _)| *name == word) {
        return Ok(*meaning);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let error = ValueError::new(format!("`{word}` is not a valid value"));
    Err(match nearest(word, names.iter().copied()) {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => error.help(format!("use one of {}", names.join(", "))),
    })
}

/// Reads an integer within bounds.
pub fn bounded(text: &str, bounds: &RangeInclusive<i64>) -> ParsedValue<i64> {
    let number = value::integer(text)?;
    if bounds.contains(&number) {
        return Ok(number);
    }
    let (min, max) = (*bounds.start(), *bounds.end());
    let message = match number < min {
        true => format!("`{text}` is less than {min}"),
        false => format!("`{text}` is more than {max}"),
    };
    Err(ValueError::new(message))
}
