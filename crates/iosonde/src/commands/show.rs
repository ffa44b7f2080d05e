//! `iosonde show`: one stored result, or one figure of all.

use super::expect::{hold, promises};
use super::export::exported;
use super::named::tell_latest;
use crate::args::{Format, PivotFormat, ShowArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::store::{LATEST, Place, Store};

/// Prints one result.
pub(crate) fn run(args: &ShowArgs) -> Result<(), Failure> {
    if let Some(words) = &args.pivot {
        return super::pivot::run(args, words);
    }
    let promises = promises(&args.expect)?;
    let place = Place::find(args.store.store.as_deref())?;
    let mut loaded = Store::open(&place)?.load(args.run.as_deref().unwrap_or(LATEST))?;
    if args.run.is_none() {
        tell_latest(&loaded);
    }
    hold(&mut loaded, &promises)?;
    let format = match args.format {
        None | Some(PivotFormat::Table) => Format::Table,
        Some(PivotFormat::Json) => Format::Json,
        Some(PivotFormat::Csv) => Format::Csv,
        Some(PivotFormat::Markdown) => Format::Markdown,
        Some(PivotFormat::Html) => {
            return Err(Failure::usage(
                "html is of figures by labels, not of one result",
                format!("write `iosonde report {} -o report.html`", loaded.name()),
            ));
        }
    };
    Output::Standard.write(&exported(&loaded, format)?)
}
