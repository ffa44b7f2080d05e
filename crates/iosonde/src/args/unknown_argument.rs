//! Remedies of unknown arguments: the command's own way, or the command that has the option.

use super::Cli;
use clap::{Command, CommandFactory};
use iosonde_job::diagnostic::nearest;
use iosonde_job::options;

/// Fewest letters of a common start by which two names are similar.
const COMMON_START_LETTERS: usize = 3;
/// Letters of a word in which one replaced letter makes another word: `foo` is not `fio`.
const SHORT_WORD_LETTERS: usize = 3;
/// Commands that measure, in the order in which remedies name them.
const MEASURING_COMMANDS: [&str; 4] = ["probe", "sweep", "load", "pts"];
/// Options that a command lacks, with its own way to the same end.
const OWN_WAYS: [(&str, &str, &str); 5] = [
    ("sweep", "quick", "--runtime 5 or --budget 20"),
    ("load", "quick", "--runtime 1"),
    ("pts", "quick", "--time-scale 0.01"),
    ("sweep", "precision", "a longer --runtime"),
    ("load", "precision", "a longer --runtime"),
];

/// Whether a mistyped word may mean a name: few letters differ, or the starts are the same.
pub(super) fn is_similar(word: &str, name: &str) -> bool {
    let word = word.trim_start_matches('-').to_lowercase();
    let name = name.trim_start_matches('-').to_lowercase();
    let letters = word.chars().count();
    let pairs = word.chars().zip(name.chars());
    let common = pairs.take_while(|(one, other)| one == other).count();
    if common >= COMMON_START_LETTERS && 2 * common >= letters {
        return true;
    }
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_other_word = letters <= SHORT_WORD_LETTERS
        && letters == name.chars().count()
        && sorted(&word) != sorted(&name);
    !is_other_word && nearest(&word, [name.as_str()]).is_some()
}

/// The remedy for an option that `typed`, the command as typed, lacks. `None`: no measuring
/// command has the option.
pub(super) fn option_remedy(argument: &str, typed: &str) -> Option<String> {
    let option = argument.strip_prefix("--")?;
    let command = short_name(typed);
    let mut ways = OWN_WAYS.into_iter();
    let own_way = ways.find(|(owner, name, _)| (*owner, *name) == (command, option));
    let way = match own_way {
        Some((_, _, way)) => way.to_owned(),
        None => format!(
            "`iosonde {} --{option} ...`",
            command_with(command, option)?
        ),
    };
    Some(format!("`{command}` has no --{option}; use {way}"))
}

/// Whether only other measuring commands have the option: it is no option of fio, and so no axis.
pub(super) fn is_foreign_to_sweep(option: &str) -> bool {
    options::find_option(option).is_none() && command_with("sweep", option).is_some()
}

/// The number of arguments without a name that a command takes, if there is such an argument.
pub(super) fn excess_remedy(argument: &str, typed: &str) -> Option<String> {
    if argument.starts_with('-') {
        return None;
    }
    let root = Cli::command();
    let command = typed.split(' ').skip(1).fold(&root, |command, name| {
        command.find_subcommand(name).unwrap_or(command)
    });
    let names: Vec<String> = command
        .get_positionals()
        .filter_map(|positional| Some(positional.get_value_names()?.first()?.to_string()))
        .collect();
    let taken = match &names[..] {
        [] => return None,
        [name] => format!("one {}", name.to_lowercase()),
        names => names.join(" and "),
    };
    Some(format!("`{}` takes {taken}", short_name(typed)))
}

/// The command without the program: `probe` of `iosonde probe`.
fn short_name(typed: &str) -> &str {
    typed.split_once(' ').map_or(typed, |(_, command)| command)
}

/// The first other measuring command that has an option. Every option of fio is an axis of a
/// sweep.
fn command_with(command: &str, option: &str) -> Option<&'static str> {
    let root = Cli::command();
    if !MEASURING_COMMANDS.contains(&command) {
        return None;
    }
    let has_option = |name: &&str| {
        let is_axis = *name == "sweep" && options::find_option(option).is_some();
        is_axis
            || root
                .find_subcommand(name)
                .is_some_and(|command| lists(command, option))
    };
    let mut others = MEASURING_COMMANDS.into_iter();
    others.find(|name| *name != command && has_option(name))
}

/// Whether the help of a command lists an option.
fn lists(command: &Command, option: &str) -> bool {
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_long() == Some(option) && !argument.is_hide_set())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_differ_in_few_letters() {
        for (word, name) in [
            ("--sise", "--size"),
            ("prob", "probe"),
            ("lst", "list"),
            ("foi", "fio"),
            ("--run", "--runtime"),
            ("jsn", "json"),
        ] {
            assert!(is_similar(word, name), "{word} {name}");
        }
        for (word, name) in [
            ("foo", "fio"),
            ("test", "pts"),
            ("--iodepth", "--pod-patch"),
            ("--bs", "--beside"),
            ("--precision", "--service-account"),
            ("--no-such-option", "--no-save"),
        ] {
            assert!(!is_similar(word, name), "{word} {name}");
        }
    }

    #[test]
    fn option_remedy_names_the_way_of_the_command() {
        let remedy = |argument, typed| option_remedy(argument, typed);
        assert_eq!(
            remedy("--quick", "iosonde sweep").unwrap(),
            "`sweep` has no --quick; use --runtime 5 or --budget 20"
        );
        assert_eq!(
            remedy("--quick", "iosonde load").unwrap(),
            "`load` has no --quick; use --runtime 1"
        );
        assert_eq!(
            remedy("--rates", "iosonde probe").unwrap(),
            "`probe` has no --rates; use `iosonde load --rates ...`"
        );
        assert_eq!(remedy("--rates", "iosonde list"), None);
        assert_eq!(remedy("--zzzzqqqq", "iosonde probe"), None);
        assert!(is_foreign_to_sweep("quick") && !is_foreign_to_sweep("iodepth"));
        assert!(!is_foreign_to_sweep("zzzzqqqq"));
    }

    /// The ways are options that the commands have, and the options are options that they lack.
    #[test]
    fn own_ways_exist_in_their_commands() {
        let root = Cli::command();
        for (name, option, way) in OWN_WAYS {
            let command = root.find_subcommand(name).unwrap();
            assert!(!lists(command, option), "{name} --{option}");
            let options = way.split(' ').filter_map(|word| word.strip_prefix("--"));
            for option in options {
                assert!(lists(command, option), "{name} --{option}");
            }
        }
    }

    #[test]
    fn excess_remedy_counts_arguments_of_the_command() {
        let remedy = |typed| excess_remedy("b", typed);
        assert_eq!(remedy("iosonde load").unwrap(), "`load` takes one target");
        assert_eq!(
            remedy("iosonde compare").unwrap(),
            "`compare` takes A and B"
        );
        assert_eq!(remedy("iosonde"), None);
        assert_eq!(excess_remedy("-x", "iosonde load"), None);
    }
}
