//! `--expect`: promises of a product, for a measurement to come or a stored one.

use super::limits;
use super::show_command::store_option;
use crate::args::ExpectArgs;
use crate::failure::CommandError;
use iosonde_history::{Loaded, probe_document};
use iosonde_job::quote_shell_word;
use iosonde_limits::{Limits, LimitsError, Promise};
use iosonde_study::promise_check::PromiseCheck;
use std::path::Path;

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
        .map(|text| promise(text).map_err(|error| refused(&limits, None, text, &error)));
    each.collect()
}

/// The usage error for a product without an answer. `of` is the row or column of a pivot that
/// stands before the product.
pub(crate) fn refused(
    limits: &Limits,
    of: Option<&str>,
    product: &str,
    error: &LimitsError,
) -> CommandError {
    let value = |product: &str| match of {
        Some(of) => format!("{of}={product}"),
        None => product.to_owned(),
    };
    let help = match with_examples(limits, product, error) {
        Some(completed) => {
            let value = value(&completed);
            format!("for example `--expect {}`", quote_shell_word(&value))
        }
        None => error.remedy(),
    };
    CommandError::usage(format!("--expect {}: {error}", value(product)), help)
}

/// The product with examples of the parameters that it lacks. `None`: it lacks none, or has no
/// answer with them.
fn with_examples(limits: &Limits, product: &str, error: &LimitsError) -> Option<String> {
    let LimitsError::Missing { parameter, .. } = error else {
        return None;
    };
    limits.completed_product(product, &product.parse().ok()?, parameter)
}

/// Checks a stored probe against the promises of the arguments, in addition to those it was
/// measured with. `store` is the file of the history.
pub(crate) fn add_promise_checks(
    loaded: &mut Loaded,
    promises: &[Promise],
    (args, store): (&ExpectArgs, Option<&Path>),
) -> Result<(), CommandError> {
    if promises.is_empty() {
        return Ok(());
    }
    let name = loaded.name();
    let Some(mut probe) = loaded.study.probe(loaded.run) else {
        return Err(CommandError::usage(
            format!("{name} is not a complete probe, so --expect cannot check it"),
            format!(
                "compare its fastest figures with the limits: `iosonde report {name}{}{} -o \
                 report.html`",
                options(args),
                store_option(store)
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

/// The arguments as options of a command: ` --expect aws-gp3:100GiB`.
fn options(args: &ExpectArgs) -> String {
    let expect = args.expect.iter().map(|text| ("expect", text.clone()));
    let file = args.limits_file.as_ref();
    let file = file.map(|path| ("limits-file", path.to_string_lossy().into_owned()));
    let all = expect.chain(file);
    all.map(|(name, value)| format!(" --{name} {}", quote_shell_word(&value)))
        .collect()
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
    fn expected_products_are_options_of_the_next_command() {
        let args = ExpectArgs {
            expect: vec!["aws-gp3:100GiB".to_owned(), "a b".to_owned()],
            limits_file: Some("my limits.toml".into()),
        };
        let expected = " --expect aws-gp3:100GiB --expect 'a b' --limits-file 'my limits.toml'";
        assert_eq!(options(&args), expected);
    }

    #[test]
    fn remedy_without_an_example_stays_that_of_the_error() {
        let help = expected("gcp-pd-ssdd:375GiB").unwrap_err();
        assert!(help.starts_with("did you mean `gcp-pd-ssd`"), "{help}");
    }
}
