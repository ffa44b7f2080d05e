//! The words of a command for its pods: without its target, and without options of the cluster.

use crate::args::argument_error::argument_error;
use crate::args::wrong::typed_command;
use crate::args::{CephArgs, Cli, ClusterArgs, PodsArgs, RenderArgs};
use crate::failure::CommandError;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, CommandFactory};
use std::ffi::OsString;

/// Options that a pod cannot carry out, and what to do instead.
const REFUSED: [(&str, &str); 17] = [
    (
        "label",
        "leave out --label, and give it to `iosonde k8s collect`",
    ),
    (
        "store",
        "leave out --store, and give it to `iosonde k8s collect`",
    ),
    (
        "no-save",
        "leave out --no-save, and give it to `iosonde k8s collect`",
    ),
    (
        "format",
        "leave out --format; `iosonde k8s collect --output-format json` prints documents",
    ),
    ("allow-in-use", "leave out --allow-in-use"),
    ("allow-commands", "leave out --allow-commands"),
    ("logs", "leave out --logs"),
    ("limits-file", "leave out --limits-file"),
    ("resume", "leave out --resume: a pod has no earlier run"),
    ("dry-run", "leave out --render or --dry-run"),
    ("check", "leave out --render or --check"),
    ("export-fio", "leave out --export-fio"),
    (
        "junit",
        "leave out --junit; the exit status of `iosonde k8s collect` shows missed expectations",
    ),
    (
        "report",
        "leave out --report; `iosonde report` makes one of the collected result",
    ),
    ("list", "leave out --render or --list"),
    ("show", "leave out --render or --show"),
    ("schema", "leave out --render or --schema"),
];

/// Arguments that are in the manifest, or are replaced in the pod.
const REPLACED: [&str; 5] = ["target", "targets", "suite", "output", "allow_overwrite"];

/// Returns the command and its options as the user gave them. Positional arguments follow the
/// options. The target and the suite are left out.
pub(super) fn command_words(words: &[OsString]) -> Result<Vec<String>, CommandError> {
    let cli = Cli::command();
    let matches = cli
        .clone()
        .try_get_matches_from(words)
        .map_err(|error| argument_error(error, &typed_command::<Cli>(words)))?;
    let found = matches.subcommand();
    let found = found.and_then(|(name, given)| Some((cli.find_subcommand(name)?, given)));
    let Some((command, given)) = found else {
        return Ok(Vec::new());
    };
    let elsewhere = ids_of_pod_options();
    let mut made = vec![command.get_name().to_owned()];
    let mut positional = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let is_given = given.value_source(id) == Some(ValueSource::CommandLine);
        if !is_given || REPLACED.contains(&id) || elsewhere.iter().any(|other| other == id) {
            continue;
        }
        match argument.get_long() {
            Some(long) => {
                refuse(long)?;
                made.extend(option_words(argument, long, given)?);
            }
            None => positional.extend(values(id, given)?),
        }
    }
    made.extend(positional);
    Ok(made)
}

/// Returns the names of all options that describe the pods and their cluster.
fn ids_of_pod_options() -> Vec<String> {
    let command = ClusterArgs::augment_args(Command::new("pods"));
    let command = CephArgs::augment_args(PodsArgs::augment_args(command));
    let command = RenderArgs::augment_args(command);
    let arguments = command.get_arguments();
    arguments
        .map(|argument| argument.get_id().as_str().to_owned())
        .collect()
}

fn refuse(long: &str) -> Result<(), CommandError> {
    match REFUSED.iter().find(|(refused, _)| *refused == long) {
        None => Ok(()),
        Some((_, help)) => Err(CommandError::usage(
            format!("--{long} has no effect with --render"),
            *help,
        )),
    }
}

/// Returns an option once for each of its values.
fn option_words(
    argument: &Arg,
    long: &str,
    given: &ArgMatches,
) -> Result<Vec<String>, CommandError> {
    if !argument.get_action().takes_values() {
        return Ok(vec![format!("--{long}")]);
    }
    let values = values(argument.get_id().as_str(), given)?;
    Ok(values
        .iter()
        .map(|value| format!("--{long}={value}"))
        .collect())
}

/// Returns the values of an argument. A manifest is UTF-8.
fn values(id: &str, given: &ArgMatches) -> Result<Vec<String>, CommandError> {
    let values = given.get_raw(id).into_iter().flatten();
    values
        .map(|value| {
            value.to_str().map(str::to_owned).ok_or_else(|| {
                CommandError::usage(
                    format!("{} is not UTF-8", value.to_string_lossy()),
                    "write the value in UTF-8, as manifests are",
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_option_has_an_example_of_its_value() {
        let words = ["iosonde", "probe", ".", "--size", "4x"].map(OsString::from);
        let text = command_words(&words).unwrap_err().text(false);
        let help = "help: for example `--size 1g`";
        assert!(text.ends_with(help), "{text}");
    }

    #[test]
    fn options_with_files_are_refused_or_replaced() {
        let cli = Cli::command();
        let elsewhere = ids_of_pod_options();
        for command in ["probe", "sweep", "load", "pts", "run"] {
            for argument in cli.find_subcommand(command).unwrap().get_arguments() {
                let id = argument.get_id().as_str();
                let mut names = argument.get_value_names().into_iter().flatten();
                let is_path = names.any(|name| ["FILE", "DIR", "PATH"].contains(&name.as_str()));
                let is_handled = REPLACED.contains(&id)
                    || elsewhere.iter().any(|other| other == id)
                    || (REFUSED.iter()).any(|(long, _)| argument.get_long() == Some(*long));
                assert!(!is_path || is_handled, "{command} {id}");
            }
        }
    }
}
