//! `--expect`: what a product promises, looked up before anything is measured, or beside what has been.

use super::limits;
use crate::args::ExpectArgs;
use crate::failure::Failure;
use crate::store::{Loaded, probe_document};
use iosonde_study::limits::{Held, LimitsError, Promise};

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

/// Holds a stored probe against promises, beside those that it was held against when it was measured.
pub(crate) fn hold(loaded: &mut Loaded, promises: &[Promise]) -> Result<(), Failure> {
    if promises.is_empty() {
        return Ok(());
    }
    let name = loaded.name();
    let Some(mut probe) = loaded.study.probe(loaded.run) else {
        return Err(Failure::usage(
            format!("{name} is no whole probe, so it cannot be held against a promise"),
            format!("`iosonde report {name} --expect ...` holds its fastest figures against it"),
        ));
    };
    let before = |held: &Held| !promises.contains(&held.promise);
    let mut expected: Vec<Held> = probe.expected.drain(..).filter(before).collect();
    expected.extend(promises.iter().map(|promise| Held::of(promise, &probe)));
    probe.expect(expected);
    loaded.study.document = probe_document(&mut probe);
    Ok(())
}
