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
mod feed;
mod fio;
mod job;
mod kept_message;
mod look;
mod run;
mod scratch;
mod serve;
mod volume;

use iosonde_machine::spill_file::SpillFile;
use iosonde_result::spill_list;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const USAGE: &str = "\
usage: iosonde-agent serve [--socket PATH] [--idle SECONDS] [--first SECONDS] [--scratch DIRECTORY] [--device DEVICE]
                                    keep a session for clients, until one closes it or none asks for anything
       iosonde-agent call [--socket PATH]
                                    connect standard input and output with it
       iosonde-agent run [FILE]     run one plan, JSON from the file or from standard input
       iosonde-agent job [--scratch DIRECTORY] [--allow-overwrite DEVICE] [--allow-in-use DEVICE] [--stay] [--keep RESULT] FILE
                                    run a job file on the pod's volume, by itself; the result is the last line but one.
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
        return ended(fio::run(&words[1..]));
    }
    let rest = words.get(2..).unwrap_or_default();
    match words.get(1).and_then(|word| word.to_str()) {
        Some("fio") => ended(fio::run(rest)),
        Some("job") => ended(job::run(rest)),
        Some("result") => ended(job::tell_kept(rest)),
        Some("run") => ended(run::run(rest)),
        Some("serve") => ended(serve::Options::read(rest).and_then(|options| serve::run(&options))),
        Some("call") => {
            ended(serve::Options::read(rest).and_then(|options| call::run(&options.socket)))
        }
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
struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    fn new(status: u8, message: impl Into<String>) -> Failure {
        Failure {
            status,
            message: message.into(),
        }
    }
}

fn ended(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.message);
            ExitCode::from(failure.status)
        }
    }
}
