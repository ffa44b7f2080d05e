//! Errors of clap as one sentence and one remedy, without the usage, which fills a screen.

use super::first_examples::{example_of_argument, first_example, is_always_needed};
use super::output_file::OutputFileError;
use super::unknown_argument::{excess_remedy, is_similar, option_remedy};
use crate::failure::CommandError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;
use std::num::{IntErrorKind, ParseIntError};

/// Starts of the lines in which clap lists all values or commands.
const VALUE_LISTS: [&str; 2] = ["[possible values", "[subcommands"];

/// Converts an error of clap. `command` is the command as typed: `iosonde probe`. Requested help,
/// and the help of a command without arguments, stay as they are.
pub(crate) fn argument_error(error: clap::Error, command: &str) -> CommandError {
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_help || !error.use_stderr() {
        return CommandError::Arguments(error);
    }
    if let Some(number) = negative_number(&error) {
        return CommandError::usage(
            format!("a value begins with {number}, but must be positive"),
            "leave out the minus",
        );
    }
    let problem = invalid_number(&error).unwrap_or_else(|| problem(&error.render().to_string()));
    CommandError::usage(problem, remedy(&error, command))
}

/// Strings of one kind in the context of an error.
fn context_names(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    }
}

/// The start of a negative number that clap took for an option: `-5`.
fn negative_number(error: &clap::Error) -> Option<String> {
    let argument = context_names(error, ContextKind::InvalidArg).pop()?;
    let is_number = argument
        .strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    (error.kind() == ErrorKind::UnknownArgument && is_number).then_some(argument)
}

/// The problem with a value that is no whole number in the range of its type.
fn invalid_number(error: &clap::Error) -> Option<String> {
    let cause = error.source()?.downcast_ref::<ParseIntError>()?;
    let reason = match cause.kind() {
        IntErrorKind::Zero => "must be at least 1",
        IntErrorKind::PosOverflow => "is too large",
        IntErrorKind::NegOverflow => "is too small",
        _ => "is not a number",
    };
    let value = context_names(error, ContextKind::InvalidValue).pop()?;
    let argument = context_names(error, ContextKind::InvalidArg).pop()?;
    Some(format!(
        "invalid value '{value}' for '{argument}': `{value}` {reason}"
    ))
}

/// The first paragraph of clap's text as one line, without the list of possible values.
fn problem(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or(text);
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let lines = first.lines().map(str::trim);
    let is_list = |line: &str| VALUE_LISTS.iter().any(|start| line.starts_with(start));
    let mut lines = lines.filter(|line| !line.is_empty() && !is_list(line));
    let mut sentence = lines.next().unwrap_or_default().to_owned();
    // Names of several arguments, each on a line.
    for (index, name) in lines.enumerate() {
        sentence.push_str(if index == 0 { " " } else { ", " });
        sentence.push_str(name);
    }
    sentence
}

fn remedy(error: &clap::Error, command: &str) -> String {
    let names = |kind: ContextKind| context_names(error, kind);
    let first = |kind: ContextKind| names(kind).into_iter().next();
    let similar = |wrong: ContextKind, suggested: ContextKind| {
        let wrong = first(wrong)?;
        // clap sorts the names by their similarity, the most similar last.
        let mut suggested = names(suggested).into_iter().rev();
        suggested.find(|name| is_similar(&wrong, name))
    };
    let source = error.source();
    if let Some(file) = source.and_then(|source| source.downcast_ref::<OutputFileError>()) {
        let argument = first(ContextKind::InvalidArg).unwrap_or_default();
        return file.remedy(argument_name(&argument), command);
    }
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let unknown = first(ContextKind::InvalidArg).filter(|_| is_unknown);
    if let Some(option) = similar(ContextKind::InvalidArg, ContextKind::SuggestedArg) {
        return format!("use {option}");
    }
    if let Some(remedy) = unknown.and_then(|name| option_remedy(&name, command)) {
        return remedy;
    }
    if let Some(name) = similar(
        ContextKind::InvalidSubcommand,
        ContextKind::SuggestedSubcommand,
    ) {
        return format!("use `{command} {name}`");
    }
    if let Some(value) = similar(ContextKind::InvalidValue, ContextKind::SuggestedValue) {
        return format!("use {value}");
    }
    clap_tip(error).unwrap_or_else(|| remedy_of_kind(error, command))
}

/// The remedy for an error without a suggestion of clap.
fn remedy_of_kind(error: &clap::Error, command: &str) -> String {
    let values = context_names(error, ContextKind::ValidValue);
    let argument = context_names(error, ContextKind::InvalidArg);
    let argument = argument.first().map(|text| argument_name(text));
    let is_repeated = error.get(ContextKind::PriorArg) == error.get(ContextKind::InvalidArg);
    match (error.kind(), argument) {
        (ErrorKind::InvalidValue, _) if !values.is_empty() => {
            format!("use one of {}", values.join(", "))
        }
        (ErrorKind::ArgumentConflict, Some(name)) if is_repeated => format!("give {name} once"),
        (ErrorKind::ArgumentConflict, Some(name)) => format!("leave out {name}"),
        (ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand, _) => {
            format!("`{command} --help` lists the commands")
        }
        (ErrorKind::MissingRequiredArgument, _) => missing_remedy(error, command),
        (ErrorKind::ValueValidation | ErrorKind::InvalidValue, Some(name)) => {
            match example_of_argument(command, name) {
                Some(example) => format!("for example `{example}`"),
                None => format!("`{command} --help` describes {name}"),
            }
        }
        (ErrorKind::UnknownArgument, Some(name)) => excess_remedy(name, command)
            .unwrap_or_else(|| format!("`{command} --help` lists the arguments")),
        _ => format!("`{command} --help` lists the arguments"),
    }
}

/// The remedy for missing arguments: an example, if it has all of them.
fn missing_remedy(error: &clap::Error, command: &str) -> String {
    let missing = context_names(error, ContextKind::InvalidArg);
    let has_each = missing.iter().all(|name| is_always_needed(command, name));
    let example = first_example(command).filter(|_| has_each);
    let of_one = || match &missing[..] {
        [name] => example_of_argument(command, argument_name(name)),
        _ => None,
    };
    match example.or_else(of_one) {
        Some(example) => format!("add the arguments, for example `{example}`"),
        None => format!("add the arguments; `{command} --help` describes them"),
    }
}

/// The name of an argument in clap's text: `--size` of `--size <SIZE>`, `KEY=VALUE` of
/// `[KEY=VALUE]...`.
fn argument_name(text: &str) -> &str {
    match text.starts_with(['[', '<']) {
        true => text.trim_matches(['[', ']', '<', '>', '.']),
        false => text.split([' ', '=']).next().unwrap_or_default(),
    }
}

/// Tip of clap, such as the command that has the option. A tip to pass an unknown option as a
/// value is left out: the option is rather misspelt.
fn clap_tip(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) else {
        return None;
    };
    let tips = tips.iter().map(ToString::to_string);
    let mut tips = tips.filter(|tip| !tip.contains(" as a value, use "));
    tips.next()
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::super::wrong::typed_command;
    use super::*;
    use clap::Parser;
    use std::ffi::OsString;

    fn text(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::try_parse_from(&words).unwrap_err();
        argument_error(error, &typed_command::<Cli>(&words)).text(false)
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
                "iosonde probe --size 1g --size 2g",
                "error: the argument '--size <SIZE>' cannot be used multiple times\n\
                 help: give --size once",
            ),
            (
                "iosonde --size 1g probe",
                "error: unexpected argument '--size' found\nhelp: 'probe --size' exists",
            ),
            (
                "iosonde -- probe",
                "error: unexpected argument 'probe' found\nhelp: subcommand 'probe' exists; \
                 to use it, remove the '--' before it",
            ),
        ];
        for (line, expected) in expected {
            assert_eq!(text(line), expected, "{line}");
        }
    }

    #[test]
    fn errors_of_values_name_the_problem() {
        let expected = [
            (
                "iosonde probe --size 4x",
                "error: invalid value '4x' for '--size <SIZE>': `4x` is not a number; write for \
                 example 512m or 4g\nhelp: for example `--size 1g`",
            ),
            (
                "iosonde probe --size -5",
                "error: a value begins with -5, but must be positive\n\
                 help: leave out the minus",
            ),
            (
                "iosonde probe --seed x",
                "error: invalid value 'x' for '--seed <SEED>': `x` is not a number\n\
                 help: `iosonde probe --help` describes --seed",
            ),
            (
                "iosonde list --last 0",
                "error: invalid value '0' for '--last <N>': `0` must be at least 1\n\
                 help: for example `--last 5`",
            ),
            (
                "iosonde list foo",
                "error: invalid value 'foo' for '[KEY=VALUE]...': write KEY=VALUE\n\
                 help: for example `iosonde list disk=new`",
            ),
            (
                "iosonde load a b",
                "error: unexpected argument 'b' found\nhelp: `load` takes one target",
            ),
        ];
        for (line, expected) in expected {
            assert_eq!(text(line), expected, "{line}");
        }
        let conflict = text("iosonde probe --details --brief");
        assert!(conflict.contains("cannot be used with"), "{conflict}");
        assert!(conflict.contains("\nhelp: leave out --"), "{conflict}");
        assert!(!conflict.ends_with('>'), "{conflict}");
        let missing = text("iosonde compare");
        assert_eq!(missing.lines().count(), 2, "{missing}");
        assert!(missing.contains("not provided: <"), "{missing}");
    }

    #[test]
    fn missing_arguments_are_answered_with_an_example() {
        for (line, example) in [
            ("iosonde compare", "iosonde compare latest~1 latest"),
            ("iosonde compare 8d8fcd", "iosonde compare latest~1 latest"),
            ("iosonde rm", "iosonde rm 3fa9c1"),
            ("iosonde k8s attach", "iosonde k8s attach 3f2a9c00"),
        ] {
            let text = text(line);
            let help = format!("\nhelp: add the arguments, for example `{example}`");
            assert!(text.ends_with(&help), "{line}: {text}");
        }
        // The first example has no option that only another option needs.
        let text = text("iosonde probe . --fail-if-broken");
        let help = "\nhelp: add the arguments, for example `--expect aws-gp3:100GiB`";
        assert!(text.ends_with(help), "{text}");
    }

    #[test]
    fn dissimilar_names_get_no_suggestion() {
        let expected = [
            (
                "iosonde probe --iodepth 8",
                "`probe` has no --iodepth; use `iosonde sweep --iodepth ...`",
            ),
            (
                "iosonde probe --bs 8k",
                "`probe` has no --bs; use `iosonde sweep --bs ...`",
            ),
            (
                "iosonde load --precision 1",
                "`load` has no --precision; use a longer --runtime",
            ),
            ("iosonde foo", "`iosonde --help` lists the commands"),
            ("iosonde test", "`iosonde --help` lists the commands"),
        ];
        for (line, help) in expected {
            let text = text(line);
            assert_eq!(text.split_once("\nhelp: ").unwrap().1, help, "{line}");
        }
    }

    /// Only the lists of clap are left out: a name may begin with a bracket too.
    #[test]
    fn problem_keeps_names_in_brackets() {
        let names = "error: missing:\n  [TARGET]\n  [FILE]\n  [possible values: a, b]\n\nUsage: x";
        assert_eq!(problem(names), "missing: [TARGET], [FILE]");
        let command = "error: 'k8s' requires a subcommand\n  [subcommands: fio, csi]";
        assert_eq!(problem(command), "'k8s' requires a subcommand");
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
