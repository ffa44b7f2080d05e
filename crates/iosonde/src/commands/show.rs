//! `iosonde show`: one stored result, or one figure of all results.

use super::expect::{add_promise_checks, promises};
use super::export::exported;
use super::result_ref::print_latest;
use super::show_command::store_option;
use crate::args::{PivotFormat, ShowArgs};
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_history::{HistoryPath, LATEST};
use iosonde_report::format::Format;
use iosonde_report::suite::last_lines;

/// Prints one result, or a pivot table.
pub(crate) fn run(args: &ShowArgs) -> Result<(), CommandError> {
    if let Some(words) = &args.pivot {
        return super::pivot::run(args, words);
    }
    let promises = promises(&args.expect)?;
    let place = HistoryPath::find(args.store.store.as_deref())?;
    let mut loaded =
        crate::commands::open_history(&place)?.load(args.run.as_deref().unwrap_or(LATEST))?;
    if args.run.is_none() {
        print_latest(&loaded);
    }
    if super::recomputed::is_requested(args) {
        return super::recomputed::run(args, &loaded);
    }
    let expected = (&args.expect, args.store.store.as_deref());
    add_promise_checks(&mut loaded, &promises, expected)?;
    let format = match args.format {
        None | Some(PivotFormat::Table) => Format::Table,
        Some(PivotFormat::Json) => Format::Json,
        Some(PivotFormat::Csv) => Format::Csv,
        Some(PivotFormat::Markdown) => Format::Markdown,
        Some(PivotFormat::Html) => {
            return Err(CommandError::usage(
                "--format html shows figures of --pivot, not one result",
                format!(
                    "for one result, use `iosonde report {} -o report.html`",
                    loaded.name()
                ),
            ));
        }
    };
    let mut text = exported(&loaded, format)?;
    if let (Format::Table, Some(suite)) = (format, loaded.study.suite(loaded.run)) {
        let options = store_option(args.store.store.as_deref());
        let last = last_lines(&suite, Some(&loaded.name()), &options);
        text.push_str(&format!("\n{last}"));
    }
    Output::Standard.write(&text)
}
