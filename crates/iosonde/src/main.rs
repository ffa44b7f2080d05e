//! `iosonde`: measures storage the way it will be used. The README describes the commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    iosonde::run()
}
