//! `iosonde report`: results as one HTML file that opens anywhere, offline.

pub(super) mod input;

use super::expect::promises;
use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::html::Builder;
use input::take_all;
use std::io::IsTerminal;

/// Reads all results and writes the report.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    if args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a report is a file for a browser, not for a terminal",
            "name the file: --output report.html",
        ));
    }
    let mut report = Builder::expecting(promises(&args.expect)?);
    take_all(&mut report, &args.runs, args.store.store.as_deref())?;
    let page = report.html(args.title.as_deref())?;
    Output::open(args.output.as_deref())?.save(&page)
}
