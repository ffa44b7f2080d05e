//! `iosonde`: measures storage the way it will be used. See the README for what it can be asked.

mod args;
mod commands;
mod failure;
mod live;
mod output;
mod report;
mod signals;
mod store;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    match commands::dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.status())
        }
    }
}
