//! Sweeps, as the page draws them.

use super::document::{Rate, Sweep, SweepAxis, SweepCell, SweepCurve};
use crate::report::sweep::{
    advice_lines, headline, is_anything, knee, notes, sentence, sentences, storage,
};
use iosonde_study::sweep::{CurveResult, SweepResult};

/// A sweep from `source`.
pub(super) fn of(source: &str, result: &SweepResult) -> Sweep {
    let axes = result.axes.iter().map(|axis| SweepAxis {
        name: axis.name.clone(),
        values: axis.values.clone(),
    });
    Sweep {
        source: source.to_owned(),
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
            .chain(notes(result))
            .collect(),
    }
}

/// The same sweep on several targets, as one whose first axis they are; `None` where its other axes are not the same on all, and
/// where a target is there twice, as in two results of one suite.
pub(super) fn merged(sweeps: &[(String, Sweep)]) -> Option<Sweep> {
    let ((_, first), others) = sweeps.split_first()?;
    let axes = |sweep: &Sweep| -> Vec<(String, Vec<String>)> {
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
    let mut all = Sweep {
        source: first.source.clone(),
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
    // Of a prediction that could be anything no number is shown.
    let shown = |cell: &iosonde_study::sweep::SweepCell, value: Option<f64>| {
        value.filter(|_| !is_anything(cell))
    };
    let cells = curve.cells.iter().map(|cell| SweepCell {
        iodepth: cell.iodepth,
        basis: cell.basis,
        iops: cell
            .iops
            .filter(|_| !is_anything(cell))
            .map(|iops| Rate::of(iops.mean, iops.error)),
        bytes_per_s: shown(cell, cell.bytes_per_s),
        mean_ns: shown(cell, cell.mean_latency_ns),
        percentiles_ns: cell.latency.map_or([None; 3], |latency| {
            [latency.p50_ns, latency.p99_ns, latency.p99_9_ns]
        }),
        max_ns: cell.latency.map(|latency| latency.max_ns),
    });
    SweepCurve {
        values: curve.values.clone(),
        block_bytes: curve.block_bytes,
        sentence: sentence(result, curve),
        knee: knee(curve),
        cells: cells.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(source: &str) -> Sweep {
        Sweep {
            source: source.to_owned(),
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
                cells: Vec::new(),
            }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn sweeps_of_several_targets_are_one_and_two_of_the_same_target_are_not() {
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
