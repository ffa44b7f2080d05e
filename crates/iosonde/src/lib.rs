//! The commands of `iosonde`, which measures storage the way it will be used. The README describes
//! them.

/// Replaces the standard macro, which panics if standard error is a closed pipe: a measurement must
/// continue. Escapes control characters, since names and messages may come from outside.
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($words:tt)*) => {
        crate::output::write_to_stderr(format_args!("{}\n", format_args!($($words)*)))
    };
}
/// The same without the line break.
macro_rules! eprint {
    ($($words:tt)*) => { crate::output::write_to_stderr(format_args!($($words)*)) };
}

mod args;
mod commands;
mod drawn_view;
mod failure;
mod fio_document;
mod hooks;
mod journal;
mod last_signal;
mod live;
mod output;
mod signals;
mod terminal_text;

use failure::CommandError;
use iosonde_machine::spill_file::SpillFile;
use iosonde_result::spill_list;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command that the arguments of this process name. Returns its exit status.
pub fn run() -> ExitCode {
    drawn_view::erase_on_panic();
    spill_list::make_files_with(|| Arc::new(SpillFile::default()));
    let variable = std::env::var_os("COLUMNS");
    if let Some(columns) = terminal_text::table_columns(variable, std::io::stdout()) {
        iosonde_report::text_table::set_columns(columns);
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    match commands::dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError::Arguments(help)) if !help.use_stderr() => print_help(&help),
        Err(failure) => end_with(&failure),
    }
}

fn end_with(failure: &CommandError) -> ExitCode {
    failure.print();
    ExitCode::from(failure.status())
}

/// Prints help or the version to standard output. A reader that closes it early is no failure.
fn print_help(help: &clap::Error) -> ExitCode {
    let printed = help.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            end_with(&CommandError::StandardOutput(error))
        }
        _ => ExitCode::SUCCESS,
    }
}
