//! Sweeps for the page.

use super::document::{PageCellTexts, PageRate, PageSweep, PageSweepCell, SweepAxis, SweepCurve};
use crate::sweep::{
    advice_lines, curve_knee, headline, is_anything, notes, notes_of_step, sentence, sentences,
    storage, sweep_target_text,
};
use iosonde_result::compare::informative_interval;
use iosonde_study::probe::LatencySummary;
use iosonde_study::sweep::{CurveResult, SweepCell, SweepResult};

/// Converts a sweep from `source`.
pub(super) fn convert_sweep(source: &str, result: &SweepResult) -> PageSweep {
    convert_with_notes(source, result, notes(result))
}

/// Converts a sweep that is a step of a suite.
pub(super) fn convert_sweep_of_step(source: &str, result: &SweepResult) -> PageSweep {
    convert_with_notes(source, result, notes_of_step(result))
}

fn convert_with_notes(source: &str, result: &SweepResult, notes: Vec<String>) -> PageSweep {
    let axes = result.axes.iter().map(|axis| SweepAxis {
        name: axis.name.clone(),
        values: axis.values.clone(),
    });
    PageSweep {
        source: source.to_owned(),
        target: sweep_target_text(result),
        headline: headline(result),
        axes: axes.collect(),
        curves: result
            .curves
            .iter()
            .map(|each| curve(result, each))
            .collect(),
        notes: sentences(result)
            .into_iter()
            .chain(storage(result))
            .chain(advice_lines(result))
            .chain(notes)
            .collect(),
    }
}

/// Merges a sweep on several targets into one whose first axis is the target. Returns `None` if the
/// other axes differ, or a target occurs twice, as in two results of one suite.
pub(super) fn merged(sweeps: &[(String, PageSweep)]) -> Option<PageSweep> {
    let ((_, first), others) = sweeps.split_first()?;
    let axes = |sweep: &PageSweep| -> Vec<(String, Vec<String>)> {
        let axes = sweep.axes.iter();
        axes.map(|axis| (axis.name.clone(), axis.values.clone()))
            .collect()
    };
    if others.is_empty() || others.iter().any(|(_, other)| axes(other) != axes(first)) {
        return None;
    }
    let mut values: Vec<String> = Vec::new();
    for (target, _) in sweeps {
        if values.contains(target) {
            return None;
        }
        values.push(target.clone());
    }
    let targets = SweepAxis {
        name: "target".to_owned(),
        values,
    };
    let others = axes(first).into_iter();
    let others = others.map(|(name, values)| SweepAxis { name, values });
    let of_target = |target: &str, text: &str| format!("{target}: {text}");
    let mut all = PageSweep {
        source: first.source.clone(),
        target: targets.values.join(", "),
        headline: String::new(),
        axes: [targets].into_iter().chain(others).collect(),
        curves: Vec::new(),
        notes: Vec::new(),
    };
    let mut headlines = Vec::new();
    for (target, sweep) in sweeps {
        headlines.push(sweep.headline.clone());
        all.curves
            .extend(sweep.curves.iter().map(|curve| SweepCurve {
                values: [target].into_iter().chain(&curve.values).cloned().collect(),
                sentence: (curve.sentence.as_ref()).map(|text| of_target(target, text)),
                notes: curve.notes.clone(),
                cells: curve.cells.clone(),
                ..*curve
            }));
        all.notes
            .extend(sweep.notes.iter().map(|note| of_target(target, note)));
    }
    all.headline = headlines.join(" ");
    Some(all)
}

fn curve(result: &SweepResult, curve: &CurveResult) -> SweepCurve {
    SweepCurve {
        values: curve.values.clone(),
        block_bytes: curve.block_bytes,
        sentence: sentence(result, curve),
        knee: curve_knee(curve),
        notes: Vec::new(),
        cells: curve.cells.iter().map(convert_cell).collect(),
    }
}

/// Converts a cell.
pub(super) fn convert_cell(cell: &SweepCell) -> PageSweepCell {
    // A prediction that could be off by more than 100 % is not shown.
    let shown = |value: Option<f64>| value.filter(|_| !is_anything(cell));
    PageSweepCell {
        iodepth: cell.iodepth,
        basis: cell.basis,
        iops: cell
            .iops
            .filter(|_| !is_anything(cell))
            .map(|iops| PageRate::new(iops.mean, iops.error)),
        bytes_per_s: shown(cell.bytes_per_s),
        mean_ns: shown(cell.mean_latency_ns),
        percentiles_ns: cell.latency.map_or([None; 3], |latency| {
            [latency.p50_ns, latency.p99_ns, latency.p99_9_ns]
        }),
        p99_between_ns: cell.latency.and_then(informative_p99),
        max_ns: cell.latency.map(|latency| latency.max_ns),
        shown: Some(PageCellTexts::from_cell(cell)),
    }
}

/// Returns the interval of the percentile 99. `None`: it is not known, or not informative.
fn informative_p99(latency: LatencySummary) -> Option<(u64, u64)> {
    let (low, high) = latency.p99_between_ns?;
    informative_interval(latency.p99_ns? as f64, (low as f64, high as f64))?;
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uninformative_interval_of_p99_is_left_out() {
        let with = |interval| {
            informative_p99(LatencySummary {
                p99_ns: Some(1000),
                p99_between_ns: interval,
                ..LatencySummary::default()
            })
        };
        assert_eq!(with(Some((900, 1200))), Some((900, 1200)));
        assert_eq!(with(Some((0, 1200))), None);
        assert_eq!(with(Some((900, 9000))), None);
        assert_eq!(with(None), None);
    }

    fn sweep(source: &str) -> PageSweep {
        PageSweep {
            source: source.to_owned(),
            target: String::new(),
            headline: String::new(),
            axes: vec![SweepAxis {
                name: "iodepth".to_owned(),
                values: vec!["1".to_owned(), "2".to_owned()],
            }],
            curves: vec![SweepCurve {
                values: Vec::new(),
                block_bytes: 4096,
                sentence: None,
                knee: None,
                notes: Vec::new(),
                cells: Vec::new(),
            }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn sweeps_merge_unless_a_target_occurs_twice() {
        let on = |target: &str, source: &str| (target.to_owned(), sweep(source));
        let all = merged(&[on("a", "one.json"), on("b", "one.json")]).unwrap();
        assert_eq!(
            (all.axes[0].name.as_str(), &all.axes[0].values[..]),
            ("target", &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(all.curves.len(), 2);
        assert!(merged(&[on("a", "old.json"), on("a", "new.json")]).is_none());
        let of_both = [
            on("a", "old.json"),
            on("b", "old.json"),
            on("a", "new.json"),
        ];
        assert!(merged(&of_both).is_none());
    }
}
