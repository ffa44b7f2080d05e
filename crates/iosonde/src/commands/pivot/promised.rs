//! Promises for the figures of a pivot: from `--expect`, a label of the results, or a stored probe.

use super::figure::PivotFigure;
use crate::args::ExpectArgs;
use crate::commands::expect;
use crate::failure::CommandError;
use iosonde_history::{Store, StudySummary};
use iosonde_job::diagnostic::nearest;
use iosonde_job::plan::{ReadWrite, ReadWriteMode};
use iosonde_job::quote_shell_word;
use iosonde_limits::{Limits, LimitsError, Metric, Promise};
use iosonde_report::pivot::CellPromise;
use iosonde_result::compare::ComparedSide;
use iosonde_suite::FigureUnit;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The label of results that names their product.
const LABEL: &str = "limits";

/// All promises that can apply.
pub(super) struct Promises {
    limits: Cow<'static, Limits>,
    asked: Vec<PivotPromise>,
    /// Labels without a known product. Each is reported once.
    unknown: RefCell<BTreeSet<String>>,
}

/// One `--expect`.
struct PivotPromise {
    /// The row or column of the promise. `None` is all.
    of: Option<String>,
    /// The product as the user wrote it.
    product: String,
    promise: Promise,
    used: Cell<bool>,
}

impl Promises {
    /// Evaluates the arguments: PRODUCT:... for all, or ROW OR COLUMN=PRODUCT:...
    pub(super) fn from_args(args: &ExpectArgs) -> Result<Promises, CommandError> {
        let mut promises = Promises {
            limits: crate::commands::limits::read_limits(args.limits_file.as_deref())?,
            asked: Vec::new(),
            unknown: RefCell::default(),
        };
        for text in &args.expect {
            let (of, product) = split(text);
            let promise = promises
                .evaluate(product)
                .map_err(|error| expect::refused(&promises.limits, of, product, &error))?;
            promises.asked.push(PivotPromise {
                of: of.map(str::to_owned),
                product: product.to_owned(),
                promise,
                used: Cell::new(false),
            });
        }
        Ok(promises)
    }

    fn evaluate(&self, product: &str) -> Result<Promise, LimitsError> {
        self.limits.evaluate(&product.parse()?)
    }

    /// The promise for a cell. `None` if it has none, or not the same for all its results.
    pub(super) fn of_cell(
        &self,
        store: &Store,
        at: &(String, String),
        results: &[(&StudySummary, PivotFigure)],
        side: &ComparedSide,
        unit: FigureUnit,
    ) -> Result<Option<CellPromise>, CommandError> {
        let mut found: Option<CellPromise> = None;
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
        study: &StudySummary,
    ) -> Result<Option<Promise>, CommandError> {
        let is_of = |asked: &&PivotPromise| match &asked.of {
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
                Err(error) => {
                    if self.unknown.borrow_mut().insert(product.clone()) {
                        eprintln!("note: label {LABEL}={product}: {error}");
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

    /// Fails for an unknown row or column, as it may be a typing error. `names` are those of the
    /// rows and columns.
    pub(super) fn all_used(&self, names: &BTreeSet<&str>) -> Result<(), CommandError> {
        let unused = |asked: &&PivotPromise| asked.of.is_some() && !asked.used.get();
        let Some(PivotPromise {
            of: Some(of),
            product,
            ..
        }) = self.asked.iter().find(unused)
        else {
            return Ok(());
        };
        // A leading dash begins an option, and `split` finds no name with a colon or equals sign.
        let is_nameable = |name: &&str| !name.starts_with('-') && !name.contains([':', '=']);
        let names = || names.iter().copied().filter(is_nameable);
        let help = match nearest(of, names()).or_else(|| names().next()) {
            Some(name) => {
                let value = format!("{name}={product}");
                format!("for example `--expect {}`", quote_shell_word(&value))
            }
            None => "leave out --expect".to_owned(),
        };
        Err(CommandError::usage(
            format!("--expect {of}={product}: no row or column has the name {of}"),
            help,
        ))
    }
}

/// Splits `pd-ssd=gcp-pd-ssd:375GiB,machine=n1`: a name ends at an equals sign before any colon.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((of, product)) if !of.contains(':') => (Some(of), product),
        _ => (None, text),
    }
}

/// The promise for a figure, with the verdict.
fn judged(
    promise: &Promise,
    measured: &PivotFigure,
    side: &ComparedSide,
    unit: FigureUnit,
) -> Option<CellPromise> {
    let error = side
        .bounds
        .map(|bounds| (side.value - bounds.low).max(bounds.high - side.value));
    let judged = promise
        .judge(&[iosonde_limits::MeasuredFigure {
            metric: metric(&measured.rw, unit)?,
            per_s: side.value,
            error,
            block_bytes: measured.block_bytes,
        }])
        .pop()?;
    Some(CellPromise {
        value: judged.promised_per_s,
        ratio: judged.ratio,
        verdict: judged.verdict,
        product: promise.name(),
        source: promise.origin(),
    })
}

/// The published metric of such a workload. `None` for latencies.
fn metric(rw: &str, unit: FigureUnit) -> Option<Metric> {
    let is_iops = match unit {
        FigureUnit::PerSecond => true,
        FigureUnit::BytesPerSecond => false,
        _ => return None,
    };
    Some(match (ReadWrite::from_rw(rw)?.mode, is_iops) {
        (ReadWriteMode::Read, true) => Metric::ReadIops,
        (ReadWriteMode::Read, false) => Metric::ReadBandwidth,
        (ReadWriteMode::Write, true) => Metric::WriteIops,
        (ReadWriteMode::Write, false) => Metric::WriteBandwidth,
        (ReadWriteMode::ReadWrite, true) => Metric::Iops,
        (ReadWriteMode::ReadWrite, false) => Metric::Bandwidth,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expect_names_row_or_column_before_product() {
        let product = "gcp-pd-ssd:size=375GiB,machine=n1";
        assert_eq!(split(product), (None, product));
        assert_eq!(split("gcp-pd-ssd"), (None, "gcp-pd-ssd"));
        let named = format!("ssd 375={product}");
        assert_eq!(split(&named), (Some("ssd 375"), product));
    }

    #[test]
    fn unknown_row_has_the_nearest_name_in_its_remedy() {
        let args = ExpectArgs {
            expect: vec!["sdd=aws-gp3:100GiB".to_owned()],
            limits_file: None,
        };
        let promises = Promises::from_args(&args).unwrap();
        let help = |names: &[&str]| {
            let failure = promises.all_used(&names.iter().copied().collect());
            failure.unwrap_err().usage_parts().1.to_owned()
        };
        let expected = "for example `--expect ssd=aws-gp3:100GiB`";
        assert_eq!(help(&["eu", "ssd"]), expected);
        let first = "for example `--expect eu=aws-gp3:100GiB`";
        assert_eq!(help(&["-", "a:b", "eu", "us"]), first);
        assert_eq!(help(&["-", "a:b"]), "leave out --expect");
    }

    #[test]
    fn missing_parameter_of_named_product_has_pasteable_remedy() {
        let parsed = |value: &str| {
            let args = ExpectArgs {
                expect: vec![value.to_owned()],
                limits_file: None,
            };
            Promises::from_args(&args).map(|promises| promises.asked.len())
        };
        for (value, completed, option) in [
            (
                "gcp-pd-ssd",
                "gcp-pd-ssd:size=375GiB,machine=n1-standard-8",
                "gcp-pd-ssd:size=375GiB,machine=n1-standard-8",
            ),
            (
                "ssd 375=gcp-pd-ssd:machine=n1",
                "ssd 375=gcp-pd-ssd:machine=n1,size=375GiB,vcpus=8",
                "'ssd 375=gcp-pd-ssd:machine=n1,size=375GiB,vcpus=8'",
            ),
        ] {
            let failure = parsed(value).unwrap_err().text(false);
            let help = format!("help: for example `--expect {option}`");
            assert!(failure.contains(&help), "{failure}");
            assert_eq!(parsed(completed).ok(), Some(1), "{completed}");
        }
    }

    #[test]
    fn latency_has_no_promise_metric() {
        assert_eq!(
            metric("randread", FigureUnit::PerSecond),
            Some(Metric::ReadIops)
        );
        assert_eq!(
            metric("write", FigureUnit::BytesPerSecond),
            Some(Metric::WriteBandwidth)
        );
        assert_eq!(metric("randrw", FigureUnit::PerSecond), Some(Metric::Iops));
        assert_eq!(metric("randread", FigureUnit::Nanoseconds), None);
        assert_eq!(metric("trim", FigureUnit::PerSecond), None);
    }
}
