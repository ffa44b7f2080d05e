//! Single words: targets, simulated devices, expectations, quantities.

use iosonde_cluster::manifest::{Quantity, quantity_bytes};
use iosonde_job::TargetUri;
use iosonde_limits::Query;
use iosonde_sim::spec::SimSpec;
use iosonde_study::load::Objective;
use iosonde_suite::{Expectation, FigureName};

/// Parses a target URI, and checks that its text parses to the same target.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<TargetUri>() {
        Ok(target) => {
            let written = target.to_string();
            assert_eq!(written.parse::<TargetUri>().ok(), Some(target), "{written}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses a simulated device.
pub fn sim(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match SimSpec::parse(&text) {
        Ok(spec) => assert_eq!(SimSpec::parse(&text).ok(), Some(spec)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses an expectation, a figure's name, an objective and a promise. Checks their errors.
pub fn expectation(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(wrong) = Expectation::parse(&text) {
        assert!(
            text.get(wrong.at.clone()).is_some(),
            "{:?} of {text:?}",
            wrong.at
        );
        assert!(!wrong.problem.is_empty() && !wrong.help.is_empty());
    }
    let _ = FigureName::parse(&text);
    if let Err(error) = text.parse::<Objective>() {
        assert!(!error.to_string().is_empty());
    }
    if let Err(error) = text.parse::<Query>() {
        assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
    }
}

/// Parses a quantity of Kubernetes.
pub fn quantity(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let bytes = quantity_bytes(&Quantity(text.to_string()));
    let again = quantity_bytes(&Quantity(format!(" {text} ")));
    assert_eq!(bytes, again, "blanks around it mean nothing");
}
