//! `iosonde-agent`: the program in a pod. It runs plans from a socket or standard input, or as fio.
//!
//! The agent is linked statically, and needs no file of its image.

/// Like the standard macro, but escapes control characters, since names of jobs and files are not
/// trusted. Errors of standard error are ignored.
macro_rules! eprintln {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($words)*);
        let _ = writeln!(std::io::stderr(), "{}", iosonde_job::escape_control_characters(&text));
    }};
}

mod arguments;
mod call;
mod fio;
mod inspect;
mod job;
mod kept_message;
mod message_log;
mod node_caches;
mod queued_run;
mod run;
mod run_logs;
mod scratch;
mod serve;
mod serve_options;
mod shared_file_steps;
mod termination_message;
mod volume;

use iosonde_machine::spill_file::SpillFile;
use iosonde_result::spill_list;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const USAGE: &str = "\
usage: iosonde-agent serve [--socket PATH] [--idle SECONDS] [--first SECONDS] \
[--scratch DIRECTORY] [--device DEVICE] [--foreign-container]
                                    keep a session for clients, until one closes it or none asks \
                                    for anything
       iosonde-agent call [--socket PATH]
                                    connect standard input and output with it
       iosonde-agent run [FILE]     run one plan, JSON from the file or from standard input
       iosonde-agent job [--scratch DIRECTORY] [--allow-overwrite DEVICE] [--allow-in-use DEVICE] \
       [--stay] [--keep RESULT] FILE
                                    run a job file on the pod's volume, by itself; the result is \
                                    the last line but one.
                                    Without --scratch the volume is the device /dev/iosonde
       iosonde-agent result [--from BYTE] FILE
                                    print what a job has kept
       iosonde-agent fio ARGS...    behave as fio; so does a link to it of that name
       iosonde-agent version";

/// Default path of the agent's socket.
const SOCKET: &str = "/iosonde/socket";

fn main() -> ExitCode {
    spill_list::make_files_with(|| Arc::new(SpillFile::default()));
    let words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().and_then(|name| Path::new(name).file_name());
    if name.is_some_and(|name| name == "fio") {
        return exit_code(fio::run(&words[1..]));
    }
    let rest = words.get(2..).unwrap_or_default();
    match words.get(1).and_then(|word| word.to_str()) {
        Some("fio") => exit_code(fio::run(rest)),
        Some("job") => exit_code(job::run(rest)),
        Some("result") => exit_code(job::print_kept_result(rest)),
        Some("run") => exit_code(run::run(rest)),
        Some("serve") => exit_code(
            serve_options::ServeOptions::read(rest).and_then(|options| serve::run(&options)),
        ),
        Some("call") => exit_code(
            serve_options::ServeOptions::read(rest).and_then(|options| call::run(&options.socket)),
        ),
        Some("version" | "--version") => {
            println!("{}", program());
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Returns program and version, as in results.
fn program() -> &'static str {
    concat!("iosonde ", env!("CARGO_PKG_VERSION"))
}

/// Failure that ends the agent, with its exit status.
#[derive(Debug, PartialEq, Eq)]
struct AgentFailure {
    status: u8,
    message: String,
}

impl AgentFailure {
    fn new(status: u8, message: impl Into<String>) -> AgentFailure {
        AgentFailure {
            status,
            message: message.into(),
        }
    }
}

fn exit_code(outcome: Result<(), AgentFailure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.message);
            ExitCode::from(failure.status)
        }
    }
}
