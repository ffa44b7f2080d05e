//! Errors of clap as one sentence and one remedy, without the usage, which fills a screen.

use crate::failure::CommandError;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Converts an error of clap. `command` is the command as typed: `iosonde probe`. Requested help,
/// and the help of a command without arguments, stay as they are.
pub(crate) fn argument_error(error: clap::Error, command: &str) -> CommandError {
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    match is_help || !error.use_stderr() {
        true => CommandError::Arguments(error),
        false => CommandError::usage(
            problem(&error.render().to_string()),
            remedy(&error, command),
        ),
    }
}

/// The first paragraph of clap's text as one line, without the list of possible values.
fn problem(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or(text);
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let lines = first.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('['));
    let mut sentence = lines.next().unwrap_or_default().to_owned();
    // Names of several arguments, each on a line.
    for (index, name) in lines.enumerate() {
        sentence.push_str(if index == 0 { " " } else { ", " });
        sentence.push_str(name);
    }
    sentence
}

fn remedy(error: &clap::Error, command: &str) -> String {
    let names = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    };
    let first = |kind: ContextKind| names(kind).into_iter().next();
    if let Some(option) = first(ContextKind::SuggestedArg) {
        return format!("use {option}");
    }
    // clap sorts the names by their similarity, the most similar last.
    if let Some(name) = names(ContextKind::SuggestedSubcommand).pop() {
        return format!("use `{command} {name}`");
    }
    if let Some(value) = first(ContextKind::SuggestedValue) {
        return format!("use {value}");
    }
    let values = names(ContextKind::ValidValue);
    let argument = first(ContextKind::InvalidArg);
    match (error.kind(), argument) {
        (ErrorKind::InvalidValue, _) if !values.is_empty() => {
            format!("use one of {}", values.join(", "))
        }
        (ErrorKind::ArgumentConflict, Some(argument)) => format!("leave out {argument}"),
        (ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand, _) => {
            format!("`{command} --help` lists the commands")
        }
        (ErrorKind::MissingRequiredArgument, _) => {
            format!("add the arguments; `{command} --help` describes them")
        }
        (ErrorKind::ValueValidation | ErrorKind::InvalidValue, Some(argument)) => {
            let name = argument.split([' ', '=']).next().unwrap_or_default();
            format!("`{command} --help` describes {name}")
        }
        _ => format!("`{command} --help` lists the arguments"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::Parser;

    fn text(line: &str) -> String {
        let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
        let command = match line.split(' ').nth(1) {
            Some("probe") => "iosonde probe",
            Some("compare") => "iosonde compare",
            _ => "iosonde",
        };
        argument_error(error, command).text(false)
    }

    #[test]
    fn argument_errors_have_two_lines_without_usage() {
        let expected = [
            (
                "iosonde probe --sise 1g",
                "error: unexpected argument '--sise' found\nhelp: use --size",
            ),
            (
                "iosonde prob",
                "error: unrecognized subcommand 'prob'\nhelp: use `iosonde probe`",
            ),
            (
                "iosonde probe --zzzzqqqq",
                "error: unexpected argument '--zzzzqqqq' found\n\
                 help: `iosonde probe --help` lists the arguments",
            ),
            (
                "iosonde probe --format xyz",
                "error: invalid value 'xyz' for '--format <FORMAT>'\n\
                 help: use one of table, json, csv, markdown, fio-json",
            ),
            (
                "iosonde probe --format jsn",
                "error: invalid value 'jsn' for '--format <FORMAT>'\nhelp: use json",
            ),
            (
                "iosonde probe --size 4x",
                "error: invalid value '4x' for '--size <SIZE>': `4x` is not a number; write for \
                 example 512m or 4g\nhelp: `iosonde probe --help` describes --size",
            ),
        ];
        for (line, expected) in expected {
            assert_eq!(text(line), expected, "{line}");
        }
        let conflict = text("iosonde probe --details --brief");
        assert!(conflict.contains("cannot be used with"), "{conflict}");
        assert!(conflict.contains("\nhelp: leave out --"), "{conflict}");
        let missing = text("iosonde compare");
        assert_eq!(missing.lines().count(), 2, "{missing}");
        assert!(missing.contains("not provided: <"), "{missing}");
    }

    #[test]
    fn requested_help_stays_as_it_is() {
        for line in ["iosonde --help", "iosonde", "iosonde --version"] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            let failure = argument_error(error, "iosonde");
            assert!(matches!(failure, CommandError::Arguments(_)), "{line}");
        }
    }
}
