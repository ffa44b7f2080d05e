//! The first examples of each command, at the beginning of its help.

use clap::Command;

/// Examples at the beginning of a help text. Its end has all examples.
const EXAMPLES_MAX: usize = 2;
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
    use crate::args::Cli;
    use clap::CommandFactory;

    /// Commands whose help has no examples: groups of commands, `fio`, whose help is fio's, and
    /// commands that another command or a manifest names.
    const WITHOUT_EXAMPLES: [&str; 6] = ["k8s", "rados", "rbd", "fio", "attach", "collect"];

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
        if name == "iosonde" || WITHOUT_EXAMPLES.contains(&name.as_str()) {
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
}
