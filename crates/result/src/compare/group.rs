//! One side of a comparison: a result, or several that a label groups.

use super::figure::{Basis, Bounds, Figure, Measure, Part, Subject};
use super::interval::{LEVEL, quantile};
use serde::{Deserialize, Serialize};

/// One result as a side of a comparison sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// How messages name it: an id, or a file.
    pub name: String,
    /// The machine it ran on, if that is known. Results without one count as one machine.
    pub machine: Option<String>,
    /// What it measured.
    pub parts: Vec<Part>,
}

/// How far results of one side lie apart: standard deviations, as shares of the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// From run to run on one machine; `None` where no machine has two runs.
    pub within_machine: Option<f64>,
    /// From machine to machine beyond that; `None` where there is only one machine.
    pub between_machines: Option<f64>,
}

/// One figure of all results of a side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Geometric mean of the machines' geometric means.
    pub(super) value: f64,
    /// Its interval.
    pub(super) bounds: Option<Bounds>,
    /// Results that have the figure.
    pub(super) runs: usize,
    /// Machine and mean logarithm of each machine, by name.
    pub(super) machines: Vec<(Option<String>, f64)>,
    /// Of two results or more.
    pub(super) spread: Option<Spread>,
    /// Whether any of the results had not settled.
    pub(super) unsettled: bool,
}

/// The logarithms of one machine's results.
struct Machine<'a> {
    name: Option<&'a str>,
    logs: Vec<f64>,
}

impl Machine<'_> {
    fn mean(&self) -> f64 {
        mean(&self.logs)
    }
}

impl Group {
    /// Of a figure of the part called `part`; `None` where no result has it.
    pub(super) fn of(
        results: &[Measured],
        part: &str,
        subject: Subject,
        measure: Measure,
    ) -> Option<Group> {
        let mut machines: Vec<Machine<'_>> = Vec::new();
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
                None => machines.push(Machine {
                    name,
                    logs: vec![log],
                }),
            }
            figures.push(figure);
        }
        machines.sort_by_key(|machine| machine.name);
        let first = *figures.first()?;
        let means: Vec<f64> = machines.iter().map(Machine::mean).collect();
        let log = mean(&means);
        let bounds = match (machines.len(), figures.len()) {
            (_, 1) => first.bounds,
            (1, _) => bounds_of_logs(&machines[0].logs, Basis::Runs),
            _ => bounds_of_logs(&means, Basis::Machines),
        };
        Some(Group {
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

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Student's interval of the mean of independent logarithms, taken back from their scale.
pub(super) fn bounds_of_logs(logs: &[f64], basis: Basis) -> Option<Bounds> {
    if logs.len() < 2 {
        return None;
    }
    let n = logs.len() as f64;
    let freedom = n - 1.0;
    let half = quantile(LEVEL, freedom) * (squares(logs) / freedom / n).sqrt();
    let mean = mean(logs);
    Some(Bounds {
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        freedom,
        repeat_factor: 1.0,
        basis,
    })
}

/// Components of variance, by the method of moments of a one-way analysis with unequal numbers.
fn spread(machines: &[Machine<'_>], means: &[f64]) -> Spread {
    let runs: usize = machines.iter().map(|machine| machine.logs.len()).sum();
    let freedom = runs - machines.len();
    let within = (freedom > 0).then(|| {
        let sum: f64 = machines.iter().map(|machine| squares(&machine.logs)).sum();
        sum / freedom as f64
    });
    let between = (machines.len() > 1).then(|| {
        let of_means = squares(means) / (means.len() - 1) as f64;
        // Means of few runs differ by chance too.
        let reciprocals = machines.iter().map(|each| 1.0 / each.logs.len() as f64);
        let by_chance = within.unwrap_or(0.0) * reciprocals.sum::<f64>() / machines.len() as f64;
        (of_means - by_chance).max(0.0)
    });
    Spread {
        within_machine: within.map(f64::sqrt),
        between_machines: between.map(f64::sqrt),
    }
}
