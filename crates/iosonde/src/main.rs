//! `iosonde`: measures storage the way it will be used. See the README for what it can be asked.

/// Like the standard one, which panics where standard error is a pipe that nobody reads any more: a measurement goes on
/// without being told of. Control characters are written as escapes, as names and messages come from others.
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($words:tt)*) => { crate::output::write_to_stderr(format_args!("{}\n", format_args!($($words)*))) };
}
/// The same without an end of line.
macro_rules! eprint {
    ($($words:tt)*) => { crate::output::write_to_stderr(format_args!($($words)*)) };
}

mod args;
mod commands;
mod failure;
mod live;
mod output;
mod report;
mod signals;
mod store;

use iosonde_machine::spill_file::SpillFile;
use iosonde_result::spill_list;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    spill_list::make_files_with(|| Arc::new(SpillFile::default()));
    let words: Vec<OsString> = std::env::args_os().collect();
    match commands::dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.status())
        }
    }
}
