//! Expectations of suites: `randread.iops >= 50k`, `p99 <= 2ms`,
//! `read_iops.iops >= 90% of limits:gcp-pd-ssd:...`, `not slower than label:build=main by 5%`.

use super::names::{FigureName, FigureQuantity, FigureUnit};
use iosonde_job::value::{Bytes, TimeUnit, bytes, time_ns};
use iosonde_limits::{Limits, LimitsError, Query};
use std::ops::Range;

/// One parsed expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The text of the suite.
    pub text: String,
    /// The figure; `None` selects all figures.
    pub figure: Option<FigureName>,
    /// The claim about the figure.
    pub claim: Claim,
}

/// A claim about a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// A lower or upper bound.
    Bound {
        /// Whether the bound is a lower one.
        least: bool,
        /// The bound in the unit of the figure.
        value: f64,
    },
    /// At least this share of the promised limit of a product.
    Promised {
        /// The share: 0.9 is 90 %.
        share: f64,
        /// The product in the syntax of `iosonde limits`: `gcp-pd-ssd:375GiB,machine=n1,vcpus=8`.
        product: String,
    },
    /// Slower than earlier results by at most this share.
    NotSlower {
        /// The earlier results.
        than: Baseline,
        /// The share: 0.05 is 5 %.
        share: f64,
    },
}

/// Earlier results in the history, as the baseline of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Baseline {
    /// Results with this label; without a value, results with any value of the key.
    Label(String, Option<String>),
    /// The result with this id.
    Run(String),
}

/// An error in an expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectationError {
    /// Position in the text.
    pub at: Range<usize>,
    /// The error.
    pub problem: String,
    /// A correct form to write instead.
    pub help: String,
}

const FORMS: &str = "use e.g. `randread.iops >= 50k`, `p99 <= 2ms`, `iops >= 90% of \
                     limits:aws-gp3:375GiB` or `not slower than label:build=main by 5%`";
const NOT_SLOWER: &str = "not slower than";

impl Expectation {
    /// Parses an expectation.
    ///
    /// # Errors
    /// Returns the error with its position in the text.
    pub fn parse(text: &str) -> Result<Expectation, ExpectationError> {
        if let Some(at) = text.find(NOT_SLOWER) {
            return not_slower(text, at);
        }
        let Some((at, sign)) = operator(text) else {
            return Err(ExpectationError {
                at: 0..text.len(),
                problem: format!("`{text}` is not an expectation"),
                help: FORMS.to_owned(),
            });
        };
        let figure = figure(text, 0..at)?;
        let right = trimmed(text, at + sign.len()..text.len());
        let least = sign.starts_with('>');
        let value = &text[right.clone()];
        let claim = match value.split_once("limits:") {
            Some((share, product)) => promised(&right, share, product, least)?,
            None => {
                let Some(figure) = &figure else {
                    return Err(ExpectationError {
                        at: 0..text.len(),
                        problem: "the figure is missing".to_owned(),
                        help: FORMS.to_owned(),
                    });
                };
                let value = quantity(value, figure.asked.unit());
                let (value, at) = (value, right);
                Claim::Bound {
                    least,
                    value: value.map_err(|help| ExpectationError {
                        problem: format!(
                            "`{}` is not a valid value of this figure",
                            &text[at.clone()]
                        ),
                        at,
                        help,
                    })?,
                }
            }
        };
        Ok(Expectation {
            text: text.to_owned(),
            figure,
            claim,
        })
    }
}

impl Expectation {
    /// Returns the remedy for a promise without an answer: the expectation with examples of the
    /// parameters that its product lacks. `query` is that of the product, also with a size that the
    /// volume gives.
    pub(crate) fn remedy(&self, limits: &Limits, query: &Query, error: &LimitsError) -> String {
        match self.with_examples(limits, query, error) {
            Some(completed) => format!("for example `{completed}`"),
            None => error.remedy(),
        }
    }

    /// The text with examples of the parameters that its product lacks. `None`: it lacks none, or
    /// has no answer with them.
    fn with_examples(&self, limits: &Limits, query: &Query, error: &LimitsError) -> Option<String> {
        let LimitsError::Missing { parameter, .. } = error else {
            return None;
        };
        let Claim::Promised { product, .. } = &self.claim else {
            return None;
        };
        // The product ends the text.
        let before = self.text.trim_end().strip_suffix(product.as_str())?;
        let completed = limits.completed_product(product, query, parameter)?;
        Some(format!("{before}{completed}"))
    }
}

/// The first of `>=`, `<=`, `>`, `<`.
fn operator(text: &str) -> Option<(usize, &str)> {
    let at = text.find(['<', '>'])?;
    let length = if text[at + 1..].starts_with('=') {
        2
    } else {
        1
    };
    Some((at, &text[at..at + length]))
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..(start + part.trim().len())
}

/// Parses the name of the figure; `None` for empty text.
fn figure(text: &str, range: Range<usize>) -> Result<Option<FigureName>, ExpectationError> {
    let at = trimmed(text, range);
    if at.is_empty() {
        return Ok(None);
    }
    let name = FigureName::parse(&text[at.clone()]).map_err(|error| ExpectationError {
        problem: error.to_string(),
        help: error.help,
        at,
    })?;
    Ok(Some(name))
}

fn promised(
    at: &Range<usize>,
    share: &str,
    product: &str,
    least: bool,
) -> Result<Claim, ExpectationError> {
    let wrong = |problem: &str| ExpectationError {
        at: at.clone(),
        problem: problem.to_owned(),
        help: "use e.g. `>= 90% of limits:gcp-pd-ssd:375GiB,machine=n1,vcpus=8`".to_owned(),
    };
    if !least {
        return Err(wrong("a promise needs `>=`"));
    }
    let share = share.trim();
    let share = match share.strip_suffix("of").map(str::trim) {
        None if share.is_empty() => 1.0,
        Some(percent) => {
            percentage(percent).ok_or_else(|| wrong("the share is not a percentage"))?
        }
        None => return Err(wrong("`of` is missing between the share and the limits")),
    };
    Ok(Claim::Promised {
        share,
        product: product.trim().to_owned(),
    })
}

fn percentage(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (percent > 0.0 && percent <= 1000.0).then_some(percent / 100.0)
}

fn not_slower(text: &str, at: usize) -> Result<Expectation, ExpectationError> {
    let figure = figure(text, 0..at)?;
    let rest = trimmed(text, at + NOT_SLOWER.len()..text.len());
    let words = &text[rest.clone()];
    let wrong = |problem: &str| ExpectationError {
        at: rest.clone(),
        problem: problem.to_owned(),
        help: "use e.g. `not slower than label:build=main by 5%`, or run:3fa9c1".to_owned(),
    };
    let (than, share) = match words.rsplit_once(" by ") {
        Some((than, share)) => {
            let share = percentage(share.trim()).filter(|share| *share < 1.0);
            (
                than,
                share.ok_or_else(|| wrong("the share is not a percentage below 100%"))?,
            )
        }
        None => (words, 0.0),
    };
    let than = match than.trim().split_once(':') {
        Some(("label", label)) if !label.is_empty() => match label.split_once('=') {
            Some((key, value)) => Baseline::Label(key.to_owned(), Some(value.to_owned())),
            None => Baseline::Label(label.to_owned(), None),
        },
        Some(("run", id)) if !id.is_empty() => Baseline::Run(id.to_owned()),
        _ => {
            return Err(wrong("the baseline is neither label:KEY=VALUE nor run:ID"));
        }
    };
    if let Some(name) = &figure
        && !matches!(name.asked, FigureQuantity::Measure(_))
    {
        return Err(wrong(
            "only figures of a run can be compared with earlier results",
        ));
    }
    Ok(Expectation {
        text: text.to_owned(),
        figure,
        claim: Claim::NotSlower { than, share },
    })
}

/// A number in `unit`, or the help text for a wrong one.
fn quantity(text: &str, unit: FigureUnit) -> Result<f64, String> {
    match unit {
        FigureUnit::PerSecond => {
            per_second(text).ok_or_else(|| "use I/Os per second, e.g. 50k or 1.2M".to_owned())
        }
        FigureUnit::OfCommand => {
            per_second(text).ok_or_else(|| "use a number, e.g. 450 or 1.2k".to_owned())
        }
        FigureUnit::Depth => text.parse().map_err(|_| "use a depth, e.g. 32".to_owned()),
        FigureUnit::BytesPerSecond => {
            let amount = text.strip_suffix("/s").unwrap_or(text);
            // 100MB is 10^8 and 100MiB is 100 x 2^20.
            let named = amount.ends_with(['B', 'b']);
            let read = bytes(amount, Bytes::Decimal).ok().filter(|_| named);
            read.map(|bytes| bytes as f64).ok_or_else(|| {
                "use bytes per second with a unit, e.g. 500MB/s or 400MiB/s".to_owned()
            })
        }
        FigureUnit::Nanoseconds => {
            let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
            let read = time_ns(text, TimeUnit::Microseconds).ok();
            read.filter(|ns| has_unit && *ns > 0)
                .map(|ns| ns as f64)
                .ok_or_else(|| "use a time with a unit, e.g. 2ms or 500us".to_owned())
        }
    }
}

/// Parses a rate with decimal suffixes: `50k` is 50,000.
fn per_second(text: &str) -> Option<f64> {
    let (number, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'm' | 'M' => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(text: &str) -> Claim {
        Expectation::parse(text).unwrap().claim
    }

    #[test]
    fn bounds_are_parsed_in_figure_unit() {
        let bound = |least, value| Claim::Bound { least, value };
        assert_eq!(claim("randread.iops >= 50k"), bound(true, 50_000.0));
        assert_eq!(claim("p99<=2ms"), bound(false, 2e6));
        assert_eq!(claim("a.bw > 500MB/s"), bound(true, 5e8));
        assert_eq!(claim("a.max_bw >= 1GiB/s"), bound(true, 1_073_741_824.0));
        assert_eq!(claim("a.knee <= 32"), bound(false, 32.0));
    }

    #[test]
    fn promises_and_baselines_are_parsed() {
        let promised = Claim::Promised {
            share: 0.9,
            product: "gcp-pd-ssd:375GiB".to_owned(),
        };
        assert_eq!(claim(">= 90% of limits:gcp-pd-ssd:375GiB"), promised);
        let label = Baseline::Label("build".into(), Some("main".into()));
        let not_slower = Claim::NotSlower {
            than: label,
            share: 0.05,
        };
        assert_eq!(claim("not slower than label:build=main by 5%"), not_slower);
        let any = Claim::NotSlower {
            than: Baseline::Label("baseline".into(), None),
            share: 0.0,
        };
        assert_eq!(claim("p99 not slower than label:baseline"), any);
    }

    #[test]
    fn wrong_expectation_has_position_and_help() {
        for (text, at) in [
            ("p99 <= 2", "2"),
            ("p97 <= 2ms", "p97"),
            ("iops >= fast", "fast"),
            ("bw >= 500", "500"),
            ("iops <= 90% of limits:x", "90% of limits:x"),
            ("iops >= 90 of limits:x", "90 of limits:x"),
            ("knee not slower than label:a", "label:a"),
            ("not slower than main by 5%", "main by 5%"),
            ("iops", "iops"),
        ] {
            let wrong = Expectation::parse(text).unwrap_err();
            assert_eq!(&text[wrong.at.clone()], at, "{wrong:?}");
            assert!(!wrong.help.is_empty());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed_or_rejected(text in "[a-z0-9.%<>= :,é-]{0,40}") {
            if let Err(wrong) = Expectation::parse(&text) {
                prop_assert!(text.get(wrong.at).is_some());
            }
        }
    }
}
