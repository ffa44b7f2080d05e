//! Parses the command lines of the agent's modes: options, with or without a value, and operands.

use crate::AgentFailure;
use std::ffi::OsString;
use std::slice::Iter;

/// The arguments not yet read.
pub(crate) struct Arguments<'a>(Iter<'a, OsString>);

impl<'a> Arguments<'a> {
    /// Returns the value of the option that was read last.
    pub(crate) fn value(&mut self, name: &str) -> Result<&'a OsString, AgentFailure> {
        let value = self.0.next();
        value.ok_or_else(|| AgentFailure::new(2, format!("{name} needs a value")))
    }
}

/// Parses a command line. `take_option` receives the name of each option, and returns `false` for
/// an unknown one. Returns the operands: the arguments that do not begin with `--`.
pub(crate) fn read_options<'a>(
    arguments: &'a [OsString],
    mut take_option: impl FnMut(&str, &mut Arguments<'a>) -> Result<bool, AgentFailure>,
) -> Result<Vec<&'a OsString>, AgentFailure> {
    let mut arguments = Arguments(arguments.iter());
    let mut operands = Vec::new();
    while let Some(argument) = arguments.0.next() {
        let name = argument.to_string_lossy();
        if !name.starts_with("--") {
            operands.push(argument);
        } else if !take_option(&name, &mut arguments)? {
            return Err(AgentFailure::new(2, format!("there is no option {name}")));
        }
    }
    Ok(operands)
}
