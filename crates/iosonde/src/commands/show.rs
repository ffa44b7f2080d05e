//! `iosonde show`: one stored result, or one figure of all.

use super::expect::{hold, promises};
use super::named::tell_latest;
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::history;
use crate::store::{LATEST, Place, Store};
use jiff::tz::TimeZone;

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
    let text = history::show(&loaded, &TimeZone::system());
    Output::Standard.write(text.as_bytes())
}
