//! The first examples of each command, at the beginning of its help and in remedies.

use super::Cli;
use clap::{Command, CommandFactory};

/// Examples at the beginning of a help text. Its end has all examples.
const EXAMPLES_MAX: usize = 2;
/// Separates an example from its description.
const DESCRIPTION_INDENT: &str = "  ";
/// Commands whose options of one name have values of one form. Those of fio, which `sweep` takes as
/// axes, are lists.
const COMMANDS_ON_TARGETS: [&str; 5] = ["probe", "sweep", "load", "pts", "run"];
/// The option that permits destroying data. A remedy does not name it for an invented device.
const CONSENT_OPTION: &str = "--allow-overwrite";
/// clap's default template, with the examples below the description instead of above it.
const TEMPLATE: &str = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Repeats the first examples of a command and of its subcommands below their descriptions. Manual
/// pages leave the repetition out.
pub(super) fn with_first_examples(command: Command) -> Command {
    let command = command.mut_subcommands(with_first_examples);
    let all = command.get_after_help().map(ToString::to_string);
    let first = all.as_deref().map(first_examples).unwrap_or_default();
    match first.is_empty() {
        true => command,
        false => command.before_help(first).help_template(TEMPLATE),
    }
}

/// Returns the first example of a command as typed, `iosonde k8s csi`, without its description.
/// Examples that overwrite a device are left out. `None`: the command has no other example.
pub(super) fn first_example(typed: &str) -> Option<String> {
    let mut examples = examples_of(typed).into_iter();
    examples.find(|example| !example.contains(CONSENT_OPTION))
}

/// Returns an example of an argument: `--size 1g` for `--size`, and a whole command for a pair that
/// is no option, such as `KEY=VALUE`. An option of a command on targets may have its example in
/// another one. `None`: no example has the argument.
pub(super) fn example_of_argument(typed: &str, argument: &str) -> Option<String> {
    let Some(long) = argument.strip_prefix("--") else {
        let is_pair = |word: &str| word.contains('=') && !word.starts_with(['-', '\'']);
        let mut examples = examples_of(typed).into_iter();
        let example = examples.find(|example| example.split(' ').any(is_pair));
        return example.filter(|_| argument.contains('='));
    };
    let root = Cli::command();
    let option_of = |typed: &str| {
        let mut arguments = command_as_typed(&root, typed).get_arguments();
        arguments.find(|one| one.get_long() == Some(long))
    };
    let range = option_of(typed).and_then(clap::Arg::get_num_args);
    if range.is_some_and(|range| range.max_values() > 1) {
        return None;
    }
    let own_name = typed.split(' ').nth(1).unwrap_or_default();
    let is_on_targets = COMMANDS_ON_TARGETS.contains(&own_name);
    let others = COMMANDS_ON_TARGETS.into_iter().filter(|_| is_on_targets);
    let others = others.map(|name| format!("iosonde {name}"));
    let others = others.filter(|other| option_of(other).is_some());
    let others = others.flat_map(|other| examples_of(&other));
    let examples = examples_of(typed).into_iter().chain(others);
    let mut options = examples.filter_map(|example| option_with_value(&example, argument));
    options.next()
}

/// The option and its value in an example. `None`: the option is not there, or its value is quoted.
fn option_with_value(example: &str, option: &str) -> Option<String> {
    let mut words = example.split(' ').skip_while(|word| *word != option);
    let (name, value) = (words.next()?, words.next()?);
    let is_value = !value.starts_with(['-', '\'']);
    (is_value && name != CONSENT_OPTION).then(|| format!("{name} {value}"))
}

/// The examples of a command as typed, without their descriptions and further lines.
fn examples_of(typed: &str) -> Vec<String> {
    let root = Cli::command();
    let text = command_as_typed(&root, typed).get_after_help();
    let text = text.map(ToString::to_string).unwrap_or_default();
    let lines = text.lines().take_while(|line| !line.is_empty());
    let examples = lines.filter(|line| is_example(line));
    let commands = examples.filter_map(|line| line.trim().split(DESCRIPTION_INDENT).next());
    commands.map(str::to_owned).collect()
}

/// Whether a command as typed always needs an argument, which clap names `<RESULT>` or
/// `--expect <PRODUCT>`. The examples have no option that only another option needs.
pub(super) fn is_always_needed(typed: &str, argument: &str) -> bool {
    if !argument.trim_start_matches('<').starts_with('-') {
        return true;
    }
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    let Some(long) = name.strip_prefix("--") else {
        return false;
    };
    let root = Cli::command();
    let mut arguments = command_as_typed(&root, typed).get_arguments();
    arguments.any(|one| one.is_required_set() && one.get_long() == Some(long))
}

fn command_as_typed<'a>(root: &'a Command, typed: &str) -> &'a Command {
    let mut command = root;
    for name in typed.split(' ').skip(1) {
        command = command.find_subcommand(name).unwrap_or(command);
    }
    command
}

/// Returns the heading and the first examples, each with its continuation lines.
fn first_examples(text: &str) -> String {
    let mut examples = 0;
    let lines = text.lines().take_while(|line| {
        examples += usize::from(is_example(line));
        !line.is_empty() && examples <= EXAMPLES_MAX
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a line is the first of an example: it has an indent of two blanks.
fn is_example(line: &str) -> bool {
    line.starts_with("  ") && !line.starts_with("   ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn continuation_lines_belong_to_their_examples() {
        let text = "Examples:\n  a b   c\n  d\n        e\n  f\n\nMore text.";
        assert_eq!(first_examples(text), "Examples:\n  a b   c\n  d\n        e");
        assert_eq!(first_examples("Examples:\n  a\n\nMore."), "Examples:\n  a");
        assert_eq!(first_examples(""), "");
    }

    fn check_help(command: &mut Command, checked: &mut usize) {
        command
            .get_subcommands_mut()
            .filter(|one| !one.is_hide_set() && one.get_name() != "help")
            .for_each(|one| check_help(one, checked));
        let name = command.get_name().to_owned();
        if name == "iosonde" {
            return;
        }
        let help = command.render_long_help().to_string();
        let (beginning, _) = help.split_once("\nUsage: ").unwrap();
        let examples = beginning.lines().filter(|line| is_example(line)).count();
        assert_eq!(examples, EXAMPLES_MAX, "{name}: {beginning}");
        *checked += 1;
    }

    #[test]
    fn help_of_each_command_begins_with_two_examples() {
        let (mut cli, mut checked) = (Cli::command(), 0);
        cli.build();
        check_help(&mut cli, &mut checked);
        // Some builds hide commands.
        assert!(checked >= 15, "{checked} commands");
    }

    #[test]
    fn first_example_is_a_command_without_description() {
        for (typed, expected) in [
            ("iosonde compare", "iosonde compare latest~1 latest"),
            ("iosonde k8s attach", "iosonde k8s attach 3f2a9c00"),
            ("iosonde rm", "iosonde rm 3fa9c1"),
            (
                "iosonde pts",
                "iosonde pts write-saturation sim:nvme,fresh=4 --size 1g --time-scale 0.01",
            ),
        ] {
            assert_eq!(first_example(typed).as_deref(), Some(expected), "{typed}");
        }
        assert_eq!(first_example("iosonde man"), None);
    }

    #[test]
    fn argument_has_an_example_of_its_own_command_first() {
        for (typed, argument, expected) in [
            ("iosonde list", "--last", Some("--last 5")),
            ("iosonde list", "KEY=VALUE", Some("iosonde list disk=new")),
            ("iosonde load", "--slo", Some("--slo p99=2ms")),
            ("iosonde sweep", "--runtime", Some("--runtime 10")),
            ("iosonde probe", "--size", Some("--size 1g")),
            ("iosonde probe", "--allow-overwrite", None),
            ("iosonde list", "--size", None),
            ("iosonde run", "--beside", None),
            // The examples of a sweep have several values.
            ("iosonde load", "--iodepth", None),
            ("iosonde pts", "--numjobs", None),
            ("iosonde show", "RUN", None),
            ("iosonde show", "--value", Some("--value randread.max_iops")),
            ("iosonde show", "--pivot", None),
        ] {
            let found = example_of_argument(typed, argument);
            assert_eq!(found.as_deref(), expected, "{typed} {argument}");
        }
    }

    /// A remedy names the example of a command whose arguments are missing.
    #[test]
    fn first_examples_of_commands_are_parsed() {
        let root = Cli::command();
        for command in root.get_subcommands().filter(|one| !one.is_hide_set()) {
            let example = first_example(&format!("iosonde {}", command.get_name())).unwrap();
            // The shell takes a redirection.
            let typed = example.split(" > ").next().unwrap();
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let words = crate::args::with_axes(&words).unwrap_or(words);
            let parsed = root.clone().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
        }
    }
}
