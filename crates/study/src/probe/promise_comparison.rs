//! Compares a promise with the figures of a probe.

mod conditions;
mod measured_by_probe;

use super::probe_result::ProbeResult;
use crate::figures::phase_figure::PhaseFigure;
use crate::figures::saturation_result::Saturation;
use crate::probe_phase::ProbePhase;
use crate::promise_check::{
    CheckedFigure, CheckedQueueDepth, PromiseCheck, PromiseDoubt, PromiseOutcome,
};
use iosonde_limits::{MeasuredFigure, Metric, Promise, PromiseComparison, PromiseVerdict};
use iosonde_result::device_class::DeviceClass;
use iosonde_result::run::{RunResult, Verdict, VerdictKind};
use measured_by_probe::measured_by_probe;

/// Ratio of the mean latency of many I/Os in flight to that of one. Below it, the device was not
/// saturated: a deeper queue would raise the rate.
const UNSATURATED: f64 = 1.25;

impl PromiseCheck {
    /// Compares a promise with a probe.
    pub fn from_probe(promise: &Promise, probe: &ProbeResult) -> PromiseCheck {
        let mut rows: Vec<CheckedFigure> = probe
            .figures
            .iter()
            .filter_map(|figure| checked_figure(promise, probe, figure))
            .collect();
        rows.sort_by_key(|row| row.judged.metric);
        PromiseCheck {
            outcome: outcome(&rows),
            conditions: conditions::list_unchecked(promise, probe, &rows),
            promise: promise.clone(),
            rows,
        }
    }
}

fn checked_figure(
    promise: &Promise,
    probe: &ProbeResult,
    figure: &PhaseFigure,
) -> Option<CheckedFigure> {
    let in_phase = measured_by_probe(std::slice::from_ref(figure)).pop()?;
    let judge = |measured: MeasuredFigure| promise.judge(&[measured]).pop();
    let judged = judge(in_phase)?;
    let deeper = match judged.verdict {
        PromiseVerdict::Below => {
            knee_search(probe, figure.phase).and_then(|knee| deeper_maximum(knee, &in_phase))
        }
        _ => None,
    };
    let (measured, judged) = match deeper {
        Some((most, _)) => (most, judge(most)?),
        None => (in_phase, judged),
    };
    Some(CheckedFigure {
        phase: figure.phase,
        error_per_s: measured.error,
        at: deeper.map(|(_, at)| at),
        doubts: doubts(&judged, measured.error, probe, figure),
        judged,
    })
}

/// Returns the knee search of a phase's pattern, if it succeeded.
fn knee_search(probe: &ProbeResult, phase: ProbePhase) -> Option<&Saturation> {
    let mut knees = probe.knees.iter();
    let knee = knees.find(|knee| knee.phase == phase)?;
    Some(&knee.saturation).filter(|found| found.failure.is_none())
}

/// Returns the maximum of the search and its depth, if it exceeds the figure of the phase.
fn deeper_maximum(
    knee: &Saturation,
    phase: &MeasuredFigure,
) -> Option<(MeasuredFigure, CheckedQueueDepth)> {
    let most = match phase.metric.is_iops() {
        true => knee.maximum,
        false => knee.maximum_bytes_per_s,
    };
    let measured = MeasuredFigure {
        per_s: most.mean,
        error: most.error,
        ..*phase
    };
    let at = CheckedQueueDepth {
        jobs: knee.jobs,
        iodepth: knee.knee.iodepth,
    };
    (most.mean > phase.per_s).then_some((measured, at))
}

fn doubts(
    judged: &PromiseComparison,
    error: Option<f64>,
    probe: &ProbeResult,
    figure: &PhaseFigure,
) -> Vec<PromiseDoubt> {
    let verdicts = run(probe, figure.phase).map_or(&[][..], |run| &run.verdicts[..]);
    let mut doubts = Vec::new();
    // If a cache answered, no other doubt can be tested.
    let found = &probe.classification;
    let is_cached = found.served_from_cache || found.class == DeviceClass::Memory;
    if is_cached || has_verdict(verdicts, VerdictKind::ServedFromCache) {
        doubts.push(PromiseDoubt::ServedFromCache);
    }
    if has_verdict(verdicts, VerdictKind::UnwrittenData) {
        doubts.push(PromiseDoubt::Unwritten);
    }
    if judged.verdict != PromiseVerdict::Below {
        return doubts;
    }
    for (kind, doubt) in [
        (VerdictKind::Generator, PromiseDoubt::Generator),
        (VerdictKind::Throttled, PromiseDoubt::Throttled),
        (VerdictKind::Interference, PromiseDoubt::Interference),
    ] {
        if has_verdict(verdicts, kind) {
            doubts.push(doubt);
        }
    }
    if is_unsaturated(probe, figure) {
        doubts.push(PromiseDoubt::DepthTooLow);
    }
    if error.is_none() {
        doubts.push(PromiseDoubt::NoInterval);
    }
    if !judged.firm {
        doubts.push(PromiseDoubt::NotFirm);
    }
    doubts
}

fn has_verdict(verdicts: &[Verdict], kind: VerdictKind) -> bool {
    verdicts.iter().any(|verdict| verdict.kind == kind)
}

fn run(probe: &ProbeResult, phase: ProbePhase) -> Option<&RunResult> {
    let mut runs = probe.runs.iter().rev();
    runs.find(|run| run.phase == phase).map(|run| &run.result)
}

/// Returns whether a deeper queue would raise the rate: it still rose at the greatest depth of the
/// knee search, or, without a search, latency is about as low as at depth 1.
fn is_unsaturated(probe: &ProbeResult, figure: &PhaseFigure) -> bool {
    if let Some(knee) = knee_search(probe, figure.phase) {
        return knee.latency_only.is_none();
    }
    let alone = match figure.phase {
        ProbePhase::RandomRead => ProbePhase::ReadLatency,
        ProbePhase::RandomWrite => ProbePhase::WriteLatency,
        _ => return false,
    };
    let Some(alone) = probe.figure(alone) else {
        return false;
    };
    let together = figure.latency.mean_ns;
    figure.iodepth > alone.iodepth
        && together > 0.0
        && together < UNSATURATED * alone.latency.mean_ns
}

fn outcome(rows: &[CheckedFigure]) -> PromiseOutcome {
    if rows.iter().any(CheckedFigure::is_broken) {
        PromiseOutcome::Broken
    } else if !rows.is_empty() && rows.iter().all(CheckedFigure::is_kept) {
        PromiseOutcome::Kept
    } else {
        PromiseOutcome::Unclear
    }
}

/// Returns the metric that a phase measures.
fn metric_of(phase: ProbePhase) -> Option<Metric> {
    match phase {
        ProbePhase::RandomRead => Some(Metric::ReadIops),
        ProbePhase::RandomWrite => Some(Metric::WriteIops),
        ProbePhase::SequentialRead => Some(Metric::ReadBandwidth),
        ProbePhase::SequentialWrite => Some(Metric::WriteBandwidth),
        _ => None,
    }
}
