//! `--expect`: what a product promises, looked up before anything is measured.

use super::limits;
use crate::args::ExpectArgs;
use crate::failure::Failure;
use iosonde_study::limits::{LimitsError, Promise};

/// The promises that the arguments name.
pub(crate) fn promises(args: &ExpectArgs) -> Result<Vec<Promise>, Failure> {
    if args.expect.is_empty() {
        return Ok(Vec::new());
    }
    let limits = limits::read(args.limits_file.as_deref())?;
    let promise =
        |text: &String| -> Result<Promise, LimitsError> { limits.evaluate(&text.parse()?) };
    let each = args.expect.iter().map(|text| {
        promise(text)
            .map_err(|error| Failure::usage(format!("--expect {text}: {error}"), error.remedy()))
    });
    each.collect()
}
