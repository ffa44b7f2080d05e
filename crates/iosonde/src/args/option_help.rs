//! Tests of the help of all options.

use super::Cli;
use clap::{Arg, Command, CommandFactory};

/// Last letters of numbers with a unit, such as `30s`, `4g` and `375GiB`.
const UNIT_LETTERS: &[u8] = b"smhkgKMG";

/// Calls `check` for each option of a command and of those below it, with the typed command.
fn visit_options(command: &Command, typed: &str, check: &mut dyn FnMut(&str, &Arg)) {
    let options = command.get_opts().filter(|option| !option.is_hide_set());
    options.for_each(|option| check(typed, option));
    for below in command.get_subcommands() {
        visit_options(below, &format!("{typed} {}", below.get_name()), check);
    }
}

/// The help of an option and its default value.
fn help_with_default(option: &Arg) -> String {
    let help = option.get_help().map(ToString::to_string);
    let defaults = option.get_default_values().iter();
    let defaults = defaults.map(|value| value.to_string_lossy().into_owned());
    help.into_iter()
        .chain(defaults)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn times_and_sizes_have_a_value_with_a_unit_in_their_help() {
    let mut visited = 0;
    visit_options(&Cli::command(), "iosonde", &mut |typed, option| {
        let names = option.get_value_names().unwrap_or_default();
        if !names
            .iter()
            .any(|name| ["TIME", "SIZE"].contains(&name.as_str()))
        {
            return;
        }
        visited += 1;
        let help = help_with_default(option);
        let is_unit = |pair: &[u8]| pair[0].is_ascii_digit() && UNIT_LETTERS.contains(&pair[1]);
        let has_unit = help.as_bytes().windows(2).any(is_unit);
        assert!(has_unit, "{typed} --{}: {help}", option.get_id());
    });
    assert!(visited > 20, "{visited}");
}

#[test]
fn default_files_and_kubernetes_objects_are_named_in_help() {
    let mut visited = 0;
    visit_options(&Cli::command(), "iosonde", &mut |typed, option| {
        let parts: &[&str] = match option.get_long() {
            Some("store") => &["IOSONDE_STORE", "~/.local/share"],
            Some("kubeconfig") => &["KUBECONFIG", "~/.kube/config"],
            Some("priority-class") => &["PriorityClass"],
            Some("service-account") => &["[default: default]"],
            Some("image-pull-secret") => &["registry", "--image"],
            Some("snapshot-class") => &["VolumeSnapshotClass"],
            Some("run-as") => &["group ID"],
            Some("pod-label" | "pod-annotation") => &["e.g. "],
            _ => return,
        };
        visited += 1;
        let help = help_with_default(option);
        for part in parts {
            assert!(help.contains(part), "{typed}: {help}");
        }
    });
    assert!(visited > 20, "{visited}");
}
