//! `iosonde report`: results as one HTML file that opens anywhere, offline.

mod input;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::html::Builder;
use input::take;
use iosonde_study::limits::{Limits, LimitsError, Promise, Query};
use std::io::IsTerminal;

/// Reads all results and writes the report.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    if args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a report is a file for a browser, not for a terminal",
            "name the file: --output report.html",
        ));
    }
    let promises = promises(args)?;
    let mut report = Builder::default();
    for word in &args.runs {
        take(&mut report, word, args.store.store.as_deref())?;
    }
    for promise in &promises {
        report.expect(promise);
    }
    let page = report.html(args.title.as_deref())?;
    Output::open(args.output.as_deref(), false)?.write(page.as_bytes())
}

/// What is expected of what was measured.
fn promises(args: &ReportArgs) -> Result<Vec<Promise>, Failure> {
    let promise = |text: &String| -> Result<Promise, LimitsError> {
        let query: Query = text.parse()?;
        Limits::published().evaluate(&query)
    };
    let refused = |error: LimitsError| {
        Failure::usage(
            format!("--expect: {error}"),
            "write a product and its choices, e.g. gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8; `iosonde limits` lists them",
        )
    };
    let all = args.expect.iter().map(promise);
    all.collect::<Result<_, _>>().map_err(refused)
}
