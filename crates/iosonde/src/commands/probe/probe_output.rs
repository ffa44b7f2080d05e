//! Output of `iosonde probe`: the short report, all details, or a document.

use crate::args::ProbeArgs;
use crate::commands::show_command::store_options;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_report as report;
use iosonde_report::format::Format;
use iosonde_report::probe::short_report::ShortReport;
use iosonde_study::probe::ProbeResult;

/// Whether the report is the short one for people.
pub(super) fn is_short(args: &ProbeArgs) -> bool {
    args.format == Format::Table && !args.details
}

/// Prints the results, one per target, in the format of the arguments.
pub(super) fn print(
    args: &ProbeArgs,
    results: &[ProbeResult],
    ids: &[Option<String>],
    mut output: Output,
) -> Result<(), CommandError> {
    if is_short(args) && !results.is_empty() {
        let store_options = store_options(&args.keep);
        let report = ShortReport {
            results,
            ids,
            store_options: &store_options,
            brief: args.brief,
            style: output.style(),
        };
        output.write_styled(&report.text())?;
        return output.finish();
    }
    for result in results.iter().filter(|_| args.format == Format::Table) {
        let text = report::probe::table::text_among(result, results);
        output.write(&text)?;
    }
    match results.is_empty() {
        true => output.finish(),
        false => output.save(&report::probe::rest(results, args.format)?),
    }
}
