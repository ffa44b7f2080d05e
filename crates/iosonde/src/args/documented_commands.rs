//! `docs/schema/commands.json`: all commands with their long options. `cargo xtask tidy` checks
//! documents against it.

use super::Cli;
use clap::{Command, CommandFactory};
use serde_json::{Value, json};

/// `UPDATE_SCHEMA=1 cargo test -p iosonde committed_commands` rewrites the file.
#[test]
fn committed_commands_are_current() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schema/commands.json"
    );
    let mut cli = Cli::command();
    cli.build();
    let mut program = document(&cli);
    // These options precede the word fio, so clap does not list them for it.
    for option in ["label", "no-save", "store"] {
        push(&mut program["options"], option);
    }
    let current = serde_json::to_string_pretty(&program).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == current,
        "docs/schema/commands.json is out of date: \
         run UPDATE_SCHEMA=1 cargo test -p iosonde committed_commands"
    );
}

/// Returns a command with its subcommands.
fn document(command: &Command) -> Value {
    let mut options: Vec<_> = long_options(command);
    let mut value = json!({ "name": command.get_name() });
    let aliases: Vec<_> = command.get_all_aliases().collect();
    if !aliases.is_empty() {
        value["aliases"] = json!(aliases);
    }
    match command.get_name() {
        "fio" if takes_any_words(command) => {
            value["takes_fio_options"] = json!(true);
            options.extend(long_options(&crate::commands::fio::options_of_targets()));
        }
        "sweep" => value["takes_fio_options"] = json!(true),
        _ => {}
    }
    options.sort();
    options.dedup();
    value["options"] = json!(options);
    let commands: Vec<_> = command.get_subcommands().map(document).collect();
    if !commands.is_empty() {
        value["commands"] = json!(commands);
    }
    value
}

/// Whether clap passes all arguments of the command on to fio's parser.
fn takes_any_words(command: &Command) -> bool {
    command
        .get_arguments()
        .any(clap::Arg::is_trailing_var_arg_set)
}

/// Returns long names and their aliases.
fn long_options(command: &Command) -> Vec<String> {
    let names = command.get_arguments().flat_map(|argument| {
        let aliases = argument.get_all_aliases().unwrap_or_default();
        argument
            .get_long()
            .into_iter()
            .chain(aliases)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    names.collect()
}

fn push(list: &mut Value, name: &str) {
    let list = list.as_array_mut().unwrap();
    list.push(json!(name));
    list.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
}
