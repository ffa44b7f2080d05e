//! What two probes have in common beyond the figures of their phases: the most of each pattern at any depth.

use super::outcome::ProbeResult;
use super::phase::Phase;
use iosonde_result::compare::{Basis, Bounds, Figure, Measure, Part, Pattern, Subject};

/// Degrees of freedom that are taken where a result says how wide an interval is, but not what it was made from.
const FREEDOM: f64 = 20.0;

/// The most that each pattern gives at any depth, where that was searched. `phases` are the parts of the same probe.
///
/// A search takes seconds and sees nothing of how a device drifts beyond them, so that its own interval is too narrow to hold
/// two probes against each other. What comparisons know of the phase's rate they know of its maximum, at best.
pub fn most(result: &ProbeResult, phases: &[Part]) -> Vec<Part> {
    let parts = result.knees.iter().filter_map(|knee| {
        let maximum = knee.saturation.known_maximum()?;
        let subject = knee.phase.direction().into();
        let phase = phases.iter().find(|part| part.name == knee.phase.key());
        let rate = phase.and_then(|part| part.figure(subject, Measure::Iops));
        let known = rate.and_then(|rate| Some((rate, rate.bounds?)));
        let bounds = maximum.error.zip(known).map(|(error, (rate, known))| {
            let scale = maximum.mean / rate.value;
            Bounds {
                low: (maximum.mean - error).min(known.low * scale).max(0.0),
                high: (maximum.mean + error).max(known.high * scale),
                ..known
            }
        });
        let iops = figure(subject, Measure::Iops, maximum.mean, None, Basis::Series)?;
        Some(Part {
            name: most_of(knee.phase),
            // It is of no single depth: nothing but another maximum is like it.
            pattern: Pattern::default(),
            figures: vec![Figure { bounds, ..iops }],
        })
    });
    parts.collect()
}

/// Ends the name of the part of a phase's maximum; before it stands the phase's key.
pub const MOST_SUFFIX: &str = "_most";

/// What the part of a phase's maximum is called.
pub fn most_of(phase: Phase) -> String {
    format!("{}{MOST_SUFFIX}", phase.key())
}

/// A figure that can be compared, from a value and its interval; `None` where there is no value.
pub(crate) fn figure(
    subject: Subject,
    measure: Measure,
    value: f64,
    between: Option<(f64, f64)>,
    basis: Basis,
) -> Option<Figure> {
    let bounds = between.map(|(low, high)| Bounds {
        low: low.max(0.0),
        high,
        freedom: FREEDOM,
        repeat_factor: 1.0,
        basis,
    });
    (value > 0.0).then_some(Figure {
        subject,
        measure,
        value,
        bounds,
        settled: None,
    })
}
