//! Comparable parts of a probe beyond its phases: the maximum rate of each pattern at any depth.

use super::probe_result::ProbeResult;
use crate::probe_phase::ProbePhase;
use iosonde_result::compare::{
    Bounds, Figure, IntervalBasis, IoPattern, Measure, PartRole, ResultPart, Subject, name_beside,
};

/// Degrees of freedom assumed where a result gives the width of an interval, but not its samples.
const FREEDOM: f64 = 20.0;

/// The maximum rate of each pattern at any depth. `phases` are the parts of the same probe.
///
/// A search of a few seconds misses slow drift, so its own interval is too narrow to compare
/// probes. The interval of a maximum is at least as wide as that of the phase's rate.
pub fn maximum_rate_parts(result: &ProbeResult, phases: &[ResultPart]) -> Vec<ResultPart> {
    let parts = result.knees.iter().filter_map(|knee| {
        let maximum = knee.saturation.known_maximum()?;
        let subject = knee.phase.direction().into();
        let key = knee.phase.key();
        let is_it = |part: &&ResultPart| part.name == key || part.name == name_beside(key);
        let phase = phases.iter().find(is_it);
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
        let iops = figure(
            subject,
            Measure::Iops,
            maximum.mean,
            None,
            IntervalBasis::Series,
        )?;
        Some(ResultPart {
            name: most_of(knee.phase),
            // A maximum has no single depth, so its pattern matches other maxima only.
            pattern: IoPattern::default(),
            figures: vec![Figure { bounds, ..iops }],
            role: phase.map_or(PartRole::Alone, |part| part.role),
        })
    });
    parts.collect()
}

/// The part name of a phase's maximum.
pub fn most_of(phase: ProbePhase) -> String {
    format!("{}_most", phase.key())
}

/// The phase whose rate or maximum has this part name. `None`: there is none.
#[must_use]
pub fn phase_of_part(name: &str) -> Option<ProbePhase> {
    let mut measured = ProbePhase::MEASURED.into_iter();
    let of_maximum = || measured.find(|phase| most_of(*phase) == name);
    ProbePhase::from_key(name).or_else(of_maximum)
}

/// A comparable figure from a value and its interval; `None` if the value is 0.
pub(crate) fn figure(
    subject: Subject,
    measure: Measure,
    value: f64,
    between: Option<(f64, f64)>,
    basis: IntervalBasis,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_of_part_is_found_by_rate_and_maximum() {
        for phase in ProbePhase::MEASURED {
            assert_eq!(phase_of_part(phase.key()), Some(phase));
            assert_eq!(phase_of_part(&most_of(phase)), Some(phase));
        }
        assert_eq!(phase_of_part("read_most"), None);
    }
}
