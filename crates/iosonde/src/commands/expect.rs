//! `--expect`: promises of a product, for a measurement to come or a stored one.

use super::limits;
use crate::args::ExpectArgs;
use crate::failure::CommandError;
use iosonde_history::{Loaded, probe_document};
use iosonde_limits::{LimitsError, Promise};
use iosonde_study::promise_check::PromiseCheck;

/// Evaluates the promises that the arguments name.
pub(crate) fn promises(args: &ExpectArgs) -> Result<Vec<Promise>, CommandError> {
    if args.expect.is_empty() {
        return Ok(Vec::new());
    }
    let limits = limits::read_limits(args.limits_file.as_deref())?;
    let promise =
        |text: &String| -> Result<Promise, LimitsError> { limits.evaluate(&text.parse()?) };
    let each = args.expect.iter().map(|text| {
        promise(text).map_err(|error| {
            CommandError::usage(format!("--expect {text}: {error}"), error.remedy())
        })
    });
    each.collect()
}

/// Checks a stored probe against promises, in addition to those it was measured with.
pub(crate) fn add_promise_checks(
    loaded: &mut Loaded,
    promises: &[Promise],
) -> Result<(), CommandError> {
    if promises.is_empty() {
        return Ok(());
    }
    let name = loaded.name();
    let Some(mut probe) = loaded.study.probe(loaded.run) else {
        return Err(CommandError::usage(
            format!("{name} is not a complete probe, so --expect cannot check it"),
            format!(
                "`iosonde report {name} --expect ...` compares its fastest figures with the limits"
            ),
        ));
    };
    let before = |held: &PromiseCheck| !promises.contains(&held.promise);
    let mut expected: Vec<PromiseCheck> = probe.expected.drain(..).filter(before).collect();
    expected.extend(
        promises
            .iter()
            .map(|promise| PromiseCheck::from_probe(promise, &probe)),
    );
    probe.expect(expected);
    loaded.study.document = probe_document(&mut probe);
    Ok(())
}
