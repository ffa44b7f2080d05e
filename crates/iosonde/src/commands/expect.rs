//! `--expect`: promises of a product, for a measurement to come or a stored one.

use super::limits;
use crate::args::ExpectArgs;
use crate::failure::CommandError;
use iosonde_history::{Loaded, probe_document};
use iosonde_job::quote_shell_word;
use iosonde_limits::{Limits, LimitsError, Promise};
use iosonde_study::promise_check::PromiseCheck;

/// Evaluates the promises that the arguments name.
pub(crate) fn promises(args: &ExpectArgs) -> Result<Vec<Promise>, CommandError> {
    if args.expect.is_empty() {
        return Ok(Vec::new());
    }
    let limits = limits::read_limits(args.limits_file.as_deref())?;
    let promise =
        |text: &String| -> Result<Promise, LimitsError> { limits.evaluate(&text.parse()?) };
    let each = args
        .expect
        .iter()
        .map(|text| promise(text).map_err(|error| refused(&limits, text, &error)));
    each.collect()
}

/// The usage error for a product without an answer.
fn refused(limits: &Limits, text: &str, error: &LimitsError) -> CommandError {
    let example = option_with_examples(limits, text, error);
    let help = match example {
        Some(option) => format!("for example `{option}`"),
        None => error.remedy(),
    };
    CommandError::usage(format!("--expect {text}: {error}"), help)
}

/// The option with examples of the parameters that its product lacks. `None`: it lacks none, or the
/// product has no answer with them.
fn option_with_examples(limits: &Limits, text: &str, error: &LimitsError) -> Option<String> {
    let &LimitsError::Missing { parameter, .. } = error else {
        return None;
    };
    let (values, is_answered) = limits::example_values(limits, text.parse().ok()?, parameter);
    if !is_answered {
        return None;
    }
    let pairs = values.iter().map(|(name, value)| format!("{name}={value}"));
    let pairs = pairs.collect::<Vec<_>>().join(",");
    let separator = if text.contains(':') { ',' } else { ':' };
    let product = format!("{text}{separator}{pairs}");
    Some(format!("--expect {}", quote_shell_word(&product)))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The promises of a product, or the remedy.
    fn expected(product: &str) -> Result<Vec<Promise>, String> {
        let args = ExpectArgs {
            expect: vec![product.to_owned()],
            limits_file: None,
        };
        promises(&args).map_err(|failure| {
            let text = failure.text(false);
            text.split_once("\nhelp: ").unwrap().1.to_owned()
        })
    }

    #[test]
    fn remedies_for_missing_parameters_are_products_with_an_answer() {
        for (product, completed) in [
            ("gcp-pd-ssd", "gcp-pd-ssd:size=375GiB,machine=n1-standard-8"),
            (
                "gcp-pd-ssd:375GiB,machine=n1",
                "gcp-pd-ssd:375GiB,machine=n1,vcpus=8",
            ),
        ] {
            let help = format!("for example `--expect {completed}`");
            assert_eq!(expected(product).unwrap_err(), help);
            assert_eq!(expected(completed).map(|promises| promises.len()), Ok(1));
        }
    }

    #[test]
    fn remedy_without_an_example_stays_that_of_the_error() {
        let help = expected("gcp-pd-ssdd:375GiB").unwrap_err();
        assert!(help.starts_with("did you mean `gcp-pd-ssd`"), "{help}");
    }
}
