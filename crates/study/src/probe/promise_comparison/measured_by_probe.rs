//! Conversion of a probe's figures into measured figures that a promise can judge.

use super::metric_of;
use crate::figures::phase_figure::PhaseFigure;
use iosonde_limits::MeasuredFigure;

/// Returns the figures for which vendors publish limits: operations of the random phases, bandwidth
/// of the sequential phases. Phases at depth 1 and failed phases are omitted.
pub(super) fn measured_by_probe(figures: &[PhaseFigure]) -> Vec<MeasuredFigure> {
    let whole = figures.iter().filter(|figure| figure.failure.is_none());
    whole.filter_map(measure_figure).collect()
}

fn measure_figure(figure: &PhaseFigure) -> Option<MeasuredFigure> {
    let metric = metric_of(figure.phase)?;
    let estimate = if metric.is_iops() {
        figure.iops
    } else {
        figure.bytes_per_s
    };
    Some(MeasuredFigure {
        metric,
        per_s: estimate.mean,
        error: estimate.error,
        block_bytes: Some(figure.block_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::estimate::{LatencySummary, RateEstimate};
    use crate::probe_phase::ProbePhase;
    use iosonde_job::plan::Engine;
    use iosonde_limits::{Limits, Metric, PromiseVerdict};

    fn figure(phase: ProbePhase, block_bytes: u64, iops: f64) -> PhaseFigure {
        let estimate = |mean| RateEstimate {
            mean,
            error: Some(mean / 100.0),
            spread: None,
        };
        PhaseFigure {
            phase,
            block_bytes,
            iodepth: 64,
            engine: Engine::IoUring,
            direct: true,
            iops: estimate(iops),
            bytes_per_s: estimate(iops * block_bytes as f64),
            latency: LatencySummary::default(),
            sync_latency: None,
            measured_ns: 8_000_000_000,
            sure: Some(true),
            settled: Some(true),
            failure: None,
        }
    }

    #[test]
    fn probe_figures_are_judged_by_promise() {
        let figures = [
            figure(ProbePhase::RandomRead, 4096, 14_900.0),
            figure(ProbePhase::RandomWrite, 4096, 9000.0),
            figure(ProbePhase::SequentialRead, 1 << 20, 419.0),
            figure(ProbePhase::ReadLatency, 4096, 2000.0),
        ];
        let query = "gcp-pd-ssd:size=375GiB,machine=n1,vcpus=8".parse().unwrap();
        let promise = Limits::published().evaluate(&query).unwrap();
        let judged = promise.judge(&measured_by_probe(&figures));
        let verdicts: Vec<_> = judged
            .iter()
            .map(|judged| (judged.metric, judged.verdict))
            .collect();
        assert_eq!(
            verdicts,
            [
                (Metric::ReadIops, PromiseVerdict::Kept),
                (Metric::WriteIops, PromiseVerdict::Below),
                (Metric::ReadBandwidth, PromiseVerdict::Kept),
            ]
        );
        assert_eq!(judged[1].ratio, 0.6);
    }
}
