//! Checks of the words and remedies of errors, which the tests of several kinds of errors share.

use crate::run_error::{RunError, TargetProblem};

/// Checks text and remedy of an error, and that it survives JSON.
pub(super) fn check_error(error: &RunError, words: &str, remedy: &str) {
    assert_eq!(error.to_string(), words);
    assert_eq!(error.remedy(), remedy);
    let json = serde_json::to_string(error).unwrap();
    assert_eq!(
        serde_json::from_str::<RunError>(&json).unwrap(),
        *error,
        "{json}"
    );
}

pub(super) fn check(cases: &[(RunError, &str, &str)]) {
    for (error, words, remedy) in cases {
        check_error(error, words, remedy);
    }
}

/// Checks the errors of problems with a target.
pub(super) fn check_problems<'a, P: Into<TargetProblem>>(
    target: &str,
    cases: impl IntoIterator<Item = (P, &'a str, &'a str)>,
) {
    for (problem, words, remedy) in cases {
        let error = RunError::unusable_target(target, problem.into());
        check_error(&error, &format!("{target}: {words}"), remedy);
    }
}

/// Returns the error of an unusable target `/t`.
pub(super) fn on_path(cause: TargetProblem) -> RunError {
    RunError::unusable_target("/t", cause)
}

pub(super) fn text(text: &str) -> String {
    text.to_owned()
}

pub(super) fn texts(all: &[&str]) -> Vec<String> {
    all.iter().copied().map(text).collect()
}
