use super::*;
use crate::args::{Cli, CliCommand};
use clap::Parser;
use iosonde_limits::Limits;
use iosonde_machine::system_env::SystemEnv;
use iosonde_suite::{MOST_RUNS, suite};
use std::collections::BTreeMap;

/// The suite of one workload with this command line.
fn suite_of(run: &str, timeout: &str) -> Suite {
    let text = format!(
        "[[workload]]\nname = \"db\"\n[workload.command]\nrun = '''{run}'''\n\
         figure = 'tps = ([0-9.]+)'\nseries = 'now ([0-9.]+)'\ntimeout = \"{timeout}\"\n"
    );
    let (limits, variables, env) = (Limits::published(), BTreeMap::new(), SystemEnv::default());
    let read = suite("s.toml", &text, &variables, limits, MOST_RUNS, &env);
    read.unwrap_or_else(|all| panic!("{}", all.render(false)))
}

fn run(command_line: &str, timeout: &str) -> (Result<CommandResult, CommandFailure>, bool) {
    let suite = suite_of(command_line, timeout);
    let (_, step) = commands(&suite).next().unwrap();
    let stop = StopSignal::default();
    let mut session = CommandSession::new(step, "/".to_owned(), &stop);
    let run = session.run(&Plan::default(), &mut ());
    (session.ended.unwrap(), run.is_ok())
}

#[test]
fn consent_of_a_command_to_file_with_blank_is_quoted() {
    let cli = Cli::try_parse_from(["iosonde", "run", "suite.toml"]).unwrap();
    let CliCommand::Run(args) = &cli.command else {
        panic!("another command");
    };
    let file = std::env::temp_dir().join(format!("my disk {}", std::process::id()));
    std::fs::write(&file, "data").unwrap();
    let name = file.to_str().unwrap();
    let refused = refused_target("db", name, args);
    std::fs::remove_file(&file).unwrap();
    let text = refused.unwrap().text(false);
    let remedy = format!("permit it with --allow-overwrite '{name}', or use a directory");
    assert!(text.contains(&remedy), "{text}");
}

#[test]
fn figure_and_series_come_from_both_outputs() {
    let line = "echo now 3 >&2; echo now 5; echo in $PWD; echo tps = 4";
    let (result, has_run) = run(line, "1m");
    let result = result.unwrap();
    assert!(has_run);
    assert_eq!((result.value, result.samples.len()), (4.0, 2));
}

#[test]
fn failed_command_has_its_status_and_last_lines() {
    let (result, has_run) = run("echo tps = 4; echo lost the server >&2; exit 3", "1m");
    let Err(CommandFailure::Failed { ending, last_lines }) = result else {
        panic!("{result:?}");
    };
    assert_eq!(ending, "status 3");
    assert!(
        last_lines.contains(&"lost the server".to_owned()),
        "{last_lines:?}"
    );
    assert!(!has_run);
}

/// Whether a process ends soon. A zombie has ended: no process may wait for an orphan.
fn ends_soon(pid: &str) -> bool {
    let stat = format!("/proc/{pid}/stat");
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        match std::fs::read_to_string(&stat) {
            Ok(text) if !text.contains(") Z ") => std::thread::sleep(POLL),
            _ => return true,
        }
    }
    false
}

#[test]
fn command_without_an_end_is_stopped_with_its_children() {
    // The shell ends by SIGTERM, which its child ignores.
    let line = "sh -c 'trap \"\" TERM; sleep 60; true' & echo pid $!; wait";
    // A busy machine may not start the shell within the first limit.
    let printed = ["1", "20"].into_iter().find_map(|limit| {
        let begun = Instant::now();
        let (result, _) = run(line, limit);
        let Err(CommandFailure::TimedOut { last_lines, .. }) = result else {
            panic!("{result:?}");
        };
        assert!(begun.elapsed() < Duration::from_secs(50));
        (!last_lines.is_empty()).then_some(last_lines)
    });
    let last_lines = printed.expect("the process id of the child");
    let pid = last_lines[0].strip_prefix("pid ").unwrap();
    assert!(ends_soon(pid), "{last_lines:?}");
}

#[test]
fn background_process_is_stopped_when_the_command_ends() {
    let line = "sleep 60 > /dev/null 2>&1 & echo tps = $!";
    let (result, _) = run(line, "1m");
    assert!(ends_soon(&result.unwrap().value.to_string()));
}

#[test]
fn interrupted_command_has_no_result() {
    let suite = suite_of("sleep 60", "1m");
    let (_, step) = commands(&suite).next().unwrap();
    let stop = StopSignal::default();
    stop.interrupt.request();
    let mut session = CommandSession::new(step, "/".to_owned(), &stop);
    let run = session.run(&Plan::default(), &mut ());
    assert!(matches!(run, Err(RunError::Interrupted)));
    assert!(session.ended.is_none());
}

/// Interrupts a command that ignores `ignored` once it runs, as often as the third argument says.
/// Returns the time until it has ended.
fn time_to_stop(ignored: &str, interrupts: u32, is_ending: bool) -> Duration {
    let suite = suite_of(
        &format!("trap '' {ignored}; echo ready; exec sleep 60"),
        "1m",
    );
    let (_, step) = commands(&suite).next().unwrap();
    let stop = StopSignal::default();
    let session = CommandSession::new(step, "/".to_owned(), &stop);
    let mut child = session.spawn().unwrap();
    let mut ready = [0; 6];
    let from = child.stdout.as_mut().unwrap();
    from.read_exact(&mut ready).unwrap();
    (0..interrupts).for_each(|_| stop.interrupt.request());
    if is_ending {
        stop.record_end();
    }
    let begun = Instant::now();
    stop_group(&mut child, GroupSignal::Interrupt, &stop).unwrap();
    begun.elapsed()
}

#[test]
fn interrupts_send_stronger_signals_to_the_command() {
    assert!(time_to_stop("HUP", 1, false) < SIGNAL_MAX);
    assert!(time_to_stop("INT", 2, false) < SIGNAL_MAX);
    // The process exits two seconds after the third Ctrl-C.
    assert!(time_to_stop("INT TERM", 3, true) < Duration::from_secs(2));
}

#[test]
fn command_that_ignores_the_interrupt_is_terminated_later() {
    let took = time_to_stop("INT", 1, false);
    assert!(took >= SIGNAL_MAX && took < 2 * SIGNAL_MAX, "{took:?}");
}

#[test]
fn commands_are_listed_with_their_workloads() {
    let listed = listed_commands(&suite_of("pgbench -P 1 bench", "1m"));
    assert_eq!(
        listed,
        "workload `db` runs a command on this machine: pgbench -P 1 bench\n"
    );
}
