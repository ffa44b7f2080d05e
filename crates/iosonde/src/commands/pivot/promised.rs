//! What was promised of the figures of a pivot: `--expect`, a label of the results, or what a probe was held against.

use super::figure::Measured;
use crate::args::ExpectArgs;
use crate::failure::Failure;
use crate::report::pivot::Promised;
use crate::store::{Store, Summary};
use iosonde_result::compare::Side;
use iosonde_study::limits::{self, Limits, LimitsError, Metric, Promise};
use iosonde_study::suite::Unit;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The label of results that names the product which they were measured on.
const LABEL: &str = "limits";

/// All that may be held against figures.
pub(super) struct Promises {
    limits: Cow<'static, Limits>,
    asked: Vec<Asked>,
    /// Labels that name no product; each is told once.
    unknown: RefCell<BTreeSet<String>>,
}

/// One `--expect`.
struct Asked {
    /// The row or column that it is of; `None` is all.
    of: Option<String>,
    promise: Promise,
    used: Cell<bool>,
}

impl Promises {
    /// Those that the arguments name, as PRODUCT:... for all, or ROW OR COLUMN=PRODUCT:...
    pub(super) fn of(args: &ExpectArgs) -> Result<Promises, Failure> {
        let mut promises = Promises {
            limits: crate::commands::limits::read(args.limits_file.as_deref())?,
            asked: Vec::new(),
            unknown: RefCell::default(),
        };
        for text in &args.expect {
            let (of, product) = split(text);
            let promise = promises.evaluate(product).map_err(|(problem, remedy)| {
                Failure::usage(format!("--expect {text}: {problem}"), remedy)
            })?;
            promises.asked.push(Asked {
                of: of.map(str::to_owned),
                promise,
                used: Cell::new(false),
            });
        }
        Ok(promises)
    }

    fn evaluate(&self, product: &str) -> Result<Promise, (String, String)> {
        let promise = product
            .parse()
            .and_then(|query| self.limits.evaluate(&query));
        promise.map_err(|error: LimitsError| (error.to_string(), error.remedy()))
    }

    /// What was promised of a cell; `None` where nothing is, or not the same of all its results.
    pub(super) fn of_cell(
        &self,
        store: &Store,
        at: &(String, String),
        results: &[(&Summary, Measured)],
        side: &Side,
        unit: Unit,
    ) -> Result<Option<Promised>, Failure> {
        let mut found: Option<Promised> = None;
        for (study, measured) in results {
            let Some(promise) = self.of_study(store, at, study)? else {
                return Ok(None);
            };
            let Some(promised) = judged(&promise, measured, side, unit) else {
                return Ok(None);
            };
            match &found {
                Some(other) if other.value != promised.value => return Ok(None),
                _ => found = Some(promised),
            }
        }
        Ok(found)
    }

    fn of_study(
        &self,
        store: &Store,
        (row, column): &(String, String),
        study: &Summary,
    ) -> Result<Option<Promise>, Failure> {
        let is_of = |asked: &&Asked| match &asked.of {
            Some(of) => of == row || of == column,
            None => true,
        };
        if let Some(asked) = self.asked.iter().find(is_of) {
            asked.used.set(true);
            return Ok(Some(asked.promise.clone()));
        }
        if let Some(product) = study.labels.get(LABEL) {
            return Ok(match self.evaluate(product) {
                Ok(promise) => Some(promise),
                Err((problem, _)) => {
                    if self.unknown.borrow_mut().insert(product.clone()) {
                        eprintln!("note: label {LABEL}={product}: {problem}");
                    }
                    None
                }
            });
        }
        if study.kind != "probe" {
            return Ok(None);
        }
        let held = store.load(&study.id)?.study.probe(None);
        let first = held.and_then(|probe| probe.expected.into_iter().next());
        Ok(first.map(|held| held.promise))
    }

    /// A row or column that there is not is a slip of the pen.
    pub(super) fn all_used(&self) -> Result<(), Failure> {
        match self
            .asked
            .iter()
            .find(|asked| asked.of.is_some() && !asked.used.get())
        {
            Some(Asked { of: Some(of), .. }) => Err(Failure::usage(
                format!("--expect {of}=...: no row or column is called {of}"),
                "write --expect VALUE=PRODUCT:..., with a value of one of the two labels",
            )),
            _ => Ok(()),
        }
    }
}

/// `pd-ssd=gcp-pd-ssd:375GiB,machine=n1`: the name is what stands before an equals sign that comes before any colon.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((of, product)) if !of.contains(':') => (Some(of), product),
        _ => (None, text),
    }
}

/// A promise of what was measured, and what came of it.
fn judged(promise: &Promise, measured: &Measured, side: &Side, unit: Unit) -> Option<Promised> {
    let error = side
        .bounds
        .map(|bounds| (side.value - bounds.low).max(bounds.high - side.value));
    let judged = promise
        .judge(&[limits::Measured {
            metric: metric(&measured.rw, unit)?,
            per_s: side.value,
            error,
            block_bytes: measured.block_bytes,
        }])
        .pop()?;
    Some(Promised {
        value: judged.promised_per_s,
        ratio: judged.ratio,
        verdict: judged.verdict,
        product: promise.name(),
        source: promise.origin(),
    })
}

/// What vendors publish of such a workload; `None` of latencies.
fn metric(rw: &str, unit: Unit) -> Option<Metric> {
    let is_iops = match unit {
        Unit::PerSecond => true,
        Unit::BytesPerSecond => false,
        _ => return None,
    };
    Some(match (rw.trim_start_matches("rand"), is_iops) {
        ("read", true) => Metric::ReadIops,
        ("read", false) => Metric::ReadBandwidth,
        ("write", true) => Metric::WriteIops,
        ("write", false) => Metric::WriteBandwidth,
        ("rw" | "readwrite", true) => Metric::Iops,
        ("rw" | "readwrite", false) => Metric::Bandwidth,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_of_all_or_of_a_row_or_column() {
        let product = "gcp-pd-ssd:size=375GiB,machine=n1";
        assert_eq!(split(product), (None, product));
        assert_eq!(split("gcp-pd-ssd"), (None, "gcp-pd-ssd"));
        let named = format!("ssd 375={product}");
        assert_eq!(split(&named), (Some("ssd 375"), product));
    }

    #[test]
    fn latencies_are_promised_by_nobody() {
        assert_eq!(metric("randread", Unit::PerSecond), Some(Metric::ReadIops));
        assert_eq!(
            metric("write", Unit::BytesPerSecond),
            Some(Metric::WriteBandwidth)
        );
        assert_eq!(metric("randrw", Unit::PerSecond), Some(Metric::Iops));
        assert_eq!(metric("randread", Unit::Nanoseconds), None);
        assert_eq!(metric("trim", Unit::PerSecond), None);
    }
}
