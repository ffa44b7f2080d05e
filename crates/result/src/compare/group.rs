//! One side of a comparison: a result, or several results grouped by a label.

use super::confidence_interval::{LEVEL, quantile};
use super::figure::{Bounds, Figure, IntervalBasis, Measure, ResultPart, Subject};
use serde::{Deserialize, Serialize};

/// One result on a side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredResult {
    /// Name in messages: an id, or a file.
    pub name: String,
    /// Machine of the measurement, if known. Results without one count as one machine.
    pub machine: Option<String>,
    /// Measured parts.
    pub parts: Vec<ResultPart>,
}

/// Spread of the results of one side, as standard deviations relative to the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ResultSpread {
    /// Spread between runs on one machine. `None` if no machine has two runs.
    pub within_machine: Option<f64>,
    /// Spread between machines beyond the spread within them. `None` if there is only one machine.
    pub between_machines: Option<f64>,
}

/// One figure of all results of a side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FigureGroup {
    /// Geometric mean of the machines' geometric means.
    pub(super) value: f64,
    /// Confidence interval of the value.
    pub(super) bounds: Option<Bounds>,
    /// Number of results that have the figure.
    pub(super) runs: usize,
    /// Name and mean logarithm of each machine, sorted by name.
    pub(super) machines: Vec<(Option<String>, f64)>,
    /// Spread of two or more results.
    pub(super) spread: Option<ResultSpread>,
    /// Whether any of the results was not steady.
    pub(super) unsettled: bool,
}

struct MachineValues<'a> {
    name: Option<&'a str>,
    logs: Vec<f64>,
}

impl MachineValues<'_> {
    fn mean(&self) -> f64 {
        arithmetic_mean(&self.logs)
    }
}

impl FigureGroup {
    /// Groups a figure of the part named `part`. Returns `None` if no result has it.
    pub(super) fn from_results(
        results: &[MeasuredResult],
        part: &str,
        subject: Subject,
        measure: Measure,
    ) -> Option<FigureGroup> {
        let mut machines: Vec<MachineValues<'_>> = Vec::new();
        let mut figures: Vec<&Figure> = Vec::new();
        for result in results {
            let found = result.parts.iter().find(|each| each.name == part);
            let Some(figure) = found.and_then(|part| part.figure(subject, measure)) else {
                continue;
            };
            let name = result.machine.as_deref();
            let log = figure.value.ln();
            match machines.iter_mut().find(|machine| machine.name == name) {
                Some(machine) => machine.logs.push(log),
                None => machines.push(MachineValues {
                    name,
                    logs: vec![log],
                }),
            }
            figures.push(figure);
        }
        machines.sort_by_key(|machine| machine.name);
        let runs: usize = machines.iter().map(|machine| machine.logs.len()).sum();
        assert_eq!(runs, figures.len(), "each run belongs to one machine");
        let first = *figures.first()?;
        let means: Vec<f64> = machines.iter().map(MachineValues::mean).collect();
        let log = arithmetic_mean(&means);
        let bounds = match (machines.len(), figures.len()) {
            (_, 1) => first.bounds,
            (1, _) => bounds_of_logs(&machines[0].logs, IntervalBasis::Runs),
            _ => bounds_of_logs(&means, IntervalBasis::Machines),
        };
        Some(FigureGroup {
            value: if figures.len() == 1 {
                first.value
            } else {
                log.exp()
            },
            bounds,
            runs: figures.len(),
            spread: (figures.len() > 1).then(|| spread(&machines, &means)),
            machines: machines
                .iter()
                .map(|machine| (machine.name.map(str::to_owned), machine.mean()))
                .collect(),
            unsettled: figures.iter().any(|figure| figure.settled == Some(false)),
        })
    }
}

fn arithmetic_mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = arithmetic_mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Returns Student's interval of the mean of independent logarithms, transformed back.
pub(super) fn bounds_of_logs(logs: &[f64], basis: IntervalBasis) -> Option<Bounds> {
    if logs.len() < 2 {
        return None;
    }
    let n = logs.len() as f64;
    let freedom = n - 1.0;
    let half = quantile(LEVEL, freedom) * (squares(logs) / freedom / n).sqrt();
    debug_assert!(half.is_nan() || half >= 0.0, "the mean is inside");
    let mean = arithmetic_mean(logs);
    Some(Bounds {
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        freedom,
        repeat_factor: 1.0,
        basis,
    })
}

/// Returns the variance components, by the method of moments for unequal group sizes.
fn spread(machines: &[MachineValues<'_>], means: &[f64]) -> ResultSpread {
    let runs: usize = machines.iter().map(|machine| machine.logs.len()).sum();
    assert!(runs >= machines.len(), "each machine has a run");
    let freedom = runs - machines.len();
    let within = (freedom > 0).then(|| {
        let sum: f64 = machines.iter().map(|machine| squares(&machine.logs)).sum();
        sum / freedom as f64
    });
    let between = (machines.len() > 1).then(|| {
        let of_means = squares(means) / (means.len() - 1) as f64;
        // Means of few runs also differ by chance.
        let reciprocals = machines.iter().map(|each| 1.0 / each.logs.len() as f64);
        let by_chance = within.unwrap_or(0.0) * reciprocals.sum::<f64>() / machines.len() as f64;
        (of_means - by_chance).max(0.0)
    });
    ResultSpread {
        within_machine: within.map(f64::sqrt),
        between_machines: between.map(f64::sqrt),
    }
}
