//! Output of `iosonde probe`: the short report, all details, or a document.

use crate::args::ProbeArgs;
use crate::commands::show_command::store_options;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_report as report;
use iosonde_report::format::Format;
use iosonde_report::probe::repeated::{RepeatedReport, RepeatedTarget};
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
        false => output.save(&report::probe::remaining_output(results, args.format)?),
    }
}

/// Prints the runs of `--repeat`: one table per target, after the details of each run if they are
/// asked for.
pub(super) fn print_repeated(
    args: &ProbeArgs,
    targets: &[RepeatedTarget],
    planned: u32,
    mut output: Output,
) -> Result<(), CommandError> {
    if targets.iter().all(|target| target.runs.is_empty()) {
        return output.finish();
    }
    if args.format == Format::Table && args.details {
        for target in targets {
            for (run, result) in (1..).zip(&target.runs) {
                let text = report::probe::table::text_among(result, std::slice::from_ref(result));
                output.write(&format!("\nRun {run} of {planned}\n{text}"))?;
            }
        }
        output.write("\n")?;
    }
    let store_options = store_options(&args.keep);
    let report = RepeatedReport {
        targets,
        planned: planned as usize,
        store_options: &store_options,
        brief: args.brief,
        style: output.style(),
    };
    output.save(&report.document(args.format)?)
}
