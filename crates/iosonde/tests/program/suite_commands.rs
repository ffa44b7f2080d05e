//! Workloads of suites that are commands.

use crate::common::{Scratch, error, out};

/// A suite of one command, which prints a figure over time and the figure.
fn suite(command: &str) -> String {
    format!(
        "[[workload]]\nname = \"db\"\nexpect = [\"figure >= 1\"]\n[workload.command]\n\
         run = \"\"\"{command}\"\"\"\nfigure = 'tps = ([0-9.]+)'\n\
         series = 'now ([0-9.]+)'\nunit = \"tps\"\n"
    )
}

const COMMAND: &str = "for i in 1 2 3 4 5 6 7 8; do echo now 40$i; done; \
                       echo x > made-by-command; echo tps = 404.4";

#[test]
fn command_runs_only_if_permitted() {
    let scratch = Scratch::new("command-refused");
    scratch.file("s.toml", &suite("touch ran; echo tps = 4"));
    let output = scratch.run(&["run", "s.toml", "."]);
    assert_eq!(output.status.code(), Some(2));
    let text = error(&output);
    assert!(text.contains("runs a command: touch ran"), "{text}");
    assert!(text.contains("--allow-commands"), "{text}");
    // A check and a plan run nothing, so they need no permission.
    for words in ["--check", "--dry-run"] {
        let text = scratch.done(&["run", "s.toml", ".", words]);
        let line = "workload `db` runs a command on this machine: touch ran; echo tps = 4";
        assert!(text.contains(line), "{text}");
    }
    assert!(!scratch.path("ran").exists());
}

#[test]
fn figure_of_a_command_is_judged_and_stored_with_its_series() {
    let scratch = Scratch::new("command");
    scratch.file("s.toml", &suite(COMMAND));
    let words = ["run", "s.toml", ".", "--allow-commands", "--format", "json"];
    let text = scratch.done(&words);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let step = &json["suites"][0]["steps"][0];
    assert_eq!(step["found"][0]["kind"], "command_figure", "{step}");
    assert_eq!(step["found"][0]["value"], 404.4);
    assert!(step["found"][0]["interval"].is_array(), "{step}");
    assert_eq!(step["command"]["samples"].as_array().unwrap().len(), 8);
    assert_eq!(json["suites"][0]["judged"][0]["verdict"], "met");
    let stored = scratch.done(&["show"]);
    let words: Vec<&str> = stored.split_whitespace().collect();
    assert!(words.join(" ").contains("404 tps"), "{stored}");
    assert!(
        !scratch.path("made-by-command").exists(),
        "the scratch directory is removed"
    );
}

#[test]
fn command_without_a_figure_fails_with_its_last_lines() {
    let scratch = Scratch::new("command-failed");
    for (command, problem) in [
        ("echo lost the server; exit 3", "ended with status 3"),
        ("echo nothing here", "no line of the output matches"),
        ("echo tps = 1.2.3", "is not a number"),
    ] {
        scratch.file("s.toml", &suite(command));
        let output = scratch.run(&["run", "s.toml", ".", "--allow-commands"]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let text = error(&output);
        assert!(text.contains(problem), "{text}");
        let last = command.contains("1.2.3") || text.contains("its last lines");
        assert!(last, "{text}");
    }
}

/// The table and the error have a cause of several lines once.
#[test]
fn lines_of_a_failed_command_are_printed_once() {
    let scratch = Scratch::new("command-failed-once");
    let second = suite("echo lost the server; exit 3").replace("\"db\"", "\"other\"");
    scratch.file("s.toml", &(suite("echo tps = 4") + &second));
    let output = scratch.run(&["run", "s.toml", ".", "--allow-commands"]);
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output) + &error(&output);
    assert_eq!(text.matches("its last lines").count(), 1, "{text}");
    assert!(
        error(&output).contains("other: the command ended"),
        "{text}"
    );
}

#[test]
fn command_needs_a_target_of_this_machine() {
    let scratch = Scratch::new("command-target");
    scratch.file("s.toml", &suite(COMMAND));
    scratch.file("data", "mine");
    for (target, problem) in [
        ("sim:nvme", "is simulated"),
        ("sc://fast", "is in a cluster"),
        ("data", "may overwrite"),
    ] {
        let output = scratch.run(&["run", "s.toml", target, "--allow-commands"]);
        assert!(!output.status.success(), "{target}");
        assert!(error(&output).contains(problem), "{}", error(&output));
    }
}
