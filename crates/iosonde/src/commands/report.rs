//! `iosonde report`: results as one HTML file that works offline.

pub(super) mod input;

use super::expect::promises;
use crate::args::ReportArgs;
use crate::failure::CommandError;
use crate::output::{Output, print_written};
use input::take_all;
use iosonde_report::html::HtmlReportBuilder;
use std::io::IsTerminal;

/// Reads all results and writes the report.
pub(crate) fn run(args: &ReportArgs) -> Result<(), CommandError> {
    if args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(CommandError::usage(
            "a report is a page for a browser, not for a terminal",
            "write the page to a file: --output report.html",
        ));
    }
    let mut report = HtmlReportBuilder::expecting(promises(&args.expect)?);
    take_all(&mut report, &args.runs, args.store.store.as_deref())?;
    let page = report.html(args.title.as_deref())?;
    Output::open(args.output.as_deref())?.save(&page)?;
    if let Some(path) = &args.output {
        print_written(path);
    }
    Ok(())
}
