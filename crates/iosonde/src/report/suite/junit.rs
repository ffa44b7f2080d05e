//! Verdicts as a JUnit file, which every CI system shows.

use iosonde_study::suite::{SuiteResult, Verdict};

/// A test suite for each target, a test case for each figure that something is expected of. What is missed is a failure,
/// what could not be measured an error, and what cannot be told is skipped.
pub(crate) fn junit(results: &[SuiteResult]) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for result in results {
        let count = |verdict| {
            let judged = result.judged.iter();
            judged.filter(|judged| judged.verdict == verdict).count()
        };
        text.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
            escaped(&format!("{} on {}", result.suite, result.target)),
            result.judged.len(),
            count(Verdict::Missed),
            count(Verdict::NotMeasured),
            count(Verdict::CannotBeTold),
        ));
        for judged in &result.judged {
            let class = escaped(&format!("{}.{}", result.suite, judged.workload));
            let name = escaped(&format!("{}: {}", judged.figure, judged.expectation));
            let evidence = escaped(&judged.evidence);
            let told = match judged.verdict {
                Verdict::Met => format!("<system-out>{evidence}</system-out>"),
                Verdict::Missed => format!("<failure message=\"{evidence}\"/>"),
                Verdict::NotMeasured => format!("<error message=\"{evidence}\"/>"),
                Verdict::CannotBeTold => format!("<skipped message=\"{evidence}\"/>"),
            };
            text.push_str(&format!(
                "    <testcase classname=\"{class}\" name=\"{name}\">{told}</testcase>\n"
            ));
        }
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}

/// Text as XML allows it: control characters cannot be written at all.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for sign in text.chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            sign if sign.is_control() => escaped.push(' '),
            sign => escaped.push(sign),
        }
    }
    escaped
}
