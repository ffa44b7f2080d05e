//! The value of an option on its way into a job.

use crate::diagnostic::nearest;
use crate::env::Env;
use crate::plan::{Extent, PerDirection};
use crate::value::{self, Bytes, Parsed, TimeUnit, ValueError};
use std::ops::RangeInclusive;

/// The value's text, and the world to ask about it.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// `None` when the option stands alone.
    pub text: Option<&'a str>,
    /// For files named in patterns.
    pub env: &'a dyn Env,
}

impl<'a> Given<'a> {
    /// The text; "" when the option stands alone.
    pub fn str(&self) -> &'a str {
        self.text.unwrap_or("")
    }

    /// The text as it is.
    pub fn text_to(&self, target: &mut Option<String>) -> Parsed<()> {
        *target = Some(self.str().to_owned());
        Ok(())
    }

    /// On when the option stands alone or its number is not 0.
    pub fn flag(&self) -> Parsed<bool> {
        match self.text {
            None => Ok(true),
            Some(text) => match value::integer(text) {
                Ok(number) => Ok(number != 0),
                Err(_) => value::boolean(text),
            },
        }
    }

    /// A flag into its place.
    pub fn flag_to(&self, target: &mut bool) -> Parsed<()> {
        *target = self.flag()?;
        Ok(())
    }

    /// 0 or 1.
    pub fn bool(&self) -> Parsed<bool> {
        value::boolean(self.str())
    }

    /// 0 or 1 into its place.
    pub fn bool_to(&self, target: &mut bool) -> Parsed<()> {
        *target = self.bool()?;
        Ok(())
    }

    /// The opposite of 0 or 1 into its place.
    pub fn not_bool_to(&self, target: &mut bool) -> Parsed<()> {
        *target = !self.bool()?;
        Ok(())
    }

    /// A whole number within bounds.
    pub fn int(&self, bounds: RangeInclusive<i64>) -> Parsed<i64> {
        bounded(self.str(), &bounds)
    }

    /// A number of things.
    pub fn u32_to(&self, target: &mut u32, min: u32) -> Parsed<()> {
        *target = self.int(i64::from(min)..=i64::from(u32::MAX))? as u32;
        Ok(())
    }

    /// A large number of things.
    pub fn u64_to(&self, target: &mut u64, min: i64) -> Parsed<()> {
        *target = self.int(min..=i64::MAX)? as u64;
        Ok(())
    }

    /// Bytes into their place.
    pub fn bytes_to(&self, target: &mut u64, base: Bytes) -> Parsed<()> {
        *target = value::bytes(self.str(), base)?;
        Ok(())
    }

    /// Bytes or per cent into their place.
    pub fn extent_to(&self, target: &mut Extent, base: Bytes) -> Parsed<()> {
        *target = value::extent(self.str(), base)?;
        Ok(())
    }

    /// Per cent into their place.
    pub fn percent_to(&self, target: &mut u8) -> Parsed<()> {
        *target = value::percent(self.str())?;
        Ok(())
    }

    /// Per cent for each direction.
    pub fn percents_to(&self, target: &mut PerDirection<u8>) -> Parsed<()> {
        value::directions(self.str(), target, value::percent)
    }

    /// Numbers above nothing for each direction; 0 is none.
    pub fn rates_to(&self, target: &mut PerDirection<Option<u64>>, base: Bytes) -> Parsed<()> {
        value::directions(self.str(), target, |part| {
            Ok(Some(value::bytes(part, base)?).filter(|rate| *rate > 0))
        })
    }

    /// A time in nanoseconds.
    pub fn time(&self, unit: TimeUnit) -> Parsed<u64> {
        value::time_ns(self.str(), unit)
    }

    /// A time into its place, in nanoseconds.
    pub fn time_to(&self, target: &mut u64, unit: TimeUnit) -> Parsed<()> {
        *target = self.time(unit)?;
        Ok(())
    }

    /// The meaning of one of several words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Parsed<T> {
        choice(self.str(), choices)
    }

    /// The meaning of one of several words into its place.
    pub fn choice_to<T: Copy>(&self, target: &mut T, choices: &[(&str, T)]) -> Parsed<()> {
        *target = self.choice(choices)?;
        Ok(())
    }
}

/// The meaning of a word, or what words there are.
pub fn choice<T: Copy>(word: &str, choices: &[(&str, T)]) -> Parsed<T> {
    if let Some((_, meaning)) = choices.iter().find(|(name, _)| *name == word) {
        return Ok(*meaning);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let error = ValueError::new(format!("`{word}` is not one of its values"));
    Err(match nearest(word, names.iter().copied()) {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => error.help(format!("write one of {}", names.join(", "))),
    })
}

/// A whole number within bounds.
pub fn bounded(text: &str, bounds: &RangeInclusive<i64>) -> Parsed<i64> {
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
