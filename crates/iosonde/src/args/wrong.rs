//! Reports all invalid values of a command line; clap reports the first one only.

use super::argument_error::argument_error;
use crate::failure::CommandError;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Parses the arguments after the program name. Reports each invalid value.
pub(crate) fn parse<Args: Parser>(words: &[OsString]) -> Result<Args, CommandError> {
    let (first, others) = match Args::try_parse_from(words) {
        Ok(args) => return Ok(args),
        Err(first) => {
            let others = others::<Args>(words, &first);
            (first, others)
        }
    };
    let command = typed_command::<Args>(words);
    for error in others {
        argument_error(error, &command).print();
    }
    Err(argument_error(first, &command))
}

/// The program and its commands, as typed: `iosonde k8s csi`.
pub(crate) fn typed_command<Args: Parser>(words: &[OsString]) -> String {
    let mut command = Args::command();
    let mut names = vec![command.get_name().to_owned()];
    for word in words.iter().skip(1) {
        let Some(found) = command.find_subcommand(word).cloned() else {
            break;
        };
        names.push(found.get_name().to_owned());
        command = found;
    }
    names.join(" ")
}

/// Finds further errors by removing each invalid option and parsing again.
fn others<Args: Parser>(words: &[OsString], first: &clap::Error) -> Vec<clap::Error> {
    let (mut rest, mut errors) = (without(words, first), Vec::new());
    while let Some(words) = rest {
        let Err(error) = Args::try_parse_from(&words) else {
            break;
        };
        // A required argument is missing only because it was removed; help is no error.
        if error.kind() == ErrorKind::MissingRequiredArgument || !error.use_stderr() {
            break;
        }
        rest = without(&words, &error);
        errors.push(error);
    }
    errors
}

/// Removes the option whose value caused the error.
fn without(words: &[OsString], error: &clap::Error) -> Option<Vec<OsString>> {
    let is_value = matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
    );
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.as_str()),
        _ => None,
    };
    let named = text(ContextKind::InvalidArg).filter(|_| is_value)?;
    let name = named.split([' ', '=']).next()?;
    let value = text(ContextKind::InvalidValue)?;
    let has_value = |word: &OsString| word.to_string_lossy().contains(value);
    let joined = format!("{name}=");
    let is_joined =
        |word: &OsString| word.to_string_lossy().starts_with(&joined) && has_value(word);
    let mut rest = words.to_vec();
    if let Some(at) = words.iter().position(is_joined) {
        rest.remove(at);
        return Some(rest);
    }
    let is_pair = |pair: &[OsString]| pair[0] == name && has_value(&pair[1]);
    let at = words.windows(2).position(is_pair)?;
    rest.drain(at..at + 2);
    name.starts_with("--").then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;

    fn errors(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let Err(first) = Cli::try_parse_from(&words) else {
            return Vec::new();
        };
        let others = others::<Cli>(&words, &first);
        let line = |error: clap::Error| error.to_string().lines().next().map(str::to_owned);
        [first].into_iter().chain(others).filter_map(line).collect()
    }

    #[test]
    fn typed_command_includes_subcommands() {
        let command = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            typed_command::<Cli>(&words)
        };
        assert_eq!(command("iosonde probe --size 4x"), "iosonde probe");
        assert_eq!(command("iosonde rados bench 5 q"), "iosonde rados bench");
        assert_eq!(command("iosonde --nonsense"), "iosonde");
    }

    #[test]
    fn parse_reports_each_invalid_value() {
        assert!(errors("iosonde load . --slo p99=2ms").is_empty());
        let reported =
            errors("iosonde load . --slo p98=3 --rates=1,x --runtime q --format nonsense");
        let about = ["--slo", "--rates", "--runtime", "--format"];
        for name in about {
            assert!(
                reported.iter().any(|line| line.contains(name)),
                "{name}: {reported:?}"
            );
        }
        assert_eq!(reported.len(), about.len(), "{reported:?}");
        // clap checks option names before values.
        assert_eq!(errors("iosonde load . --slo p98=3 --nonsense").len(), 1);
        assert_eq!(errors("iosonde nonsense").len(), 1);
        assert_eq!(errors("iosonde load . --runtime q --help").len(), 1);
    }
}
