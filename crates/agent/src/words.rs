//! The command lines of the agent's modes: options, with or without a value, and operands.

use crate::Failure;
use std::ffi::OsString;
use std::slice::Iter;

/// What was not read yet of a command line.
pub(crate) struct Words<'a>(Iter<'a, OsString>);

impl<'a> Words<'a> {
    /// The value of the option that was read last.
    pub(crate) fn value(&mut self, name: &str) -> Result<&'a OsString, Failure> {
        let value = self.0.next();
        value.ok_or_else(|| Failure::new(2, format!("{name} needs a value")))
    }
}

/// Reads a command line. `take` gets the name of each option, and returns `false` where there is none of that name. Returns the
/// operands: the words that do not begin with `--`.
pub(crate) fn read_options<'a>(
    words: &'a [OsString],
    mut take: impl FnMut(&str, &mut Words<'a>) -> Result<bool, Failure>,
) -> Result<Vec<&'a OsString>, Failure> {
    let mut words = Words(words.iter());
    let mut operands = Vec::new();
    while let Some(word) = words.0.next() {
        let name = word.to_string_lossy();
        if !name.starts_with("--") {
            operands.push(word);
        } else if !take(&name, &mut words)? {
            return Err(Failure::new(2, format!("there is no option {name}")));
        }
    }
    Ok(operands)
}
