//! A probe's figures, as a promise judges them.

use super::Measured;
use super::held::metric_of;
use crate::probe::Figure;

/// What of a probe vendors publish: operations of the random phases, bandwidth of the sequential ones. Latency and the speed of a
/// log at depth 1 are not among it, and a phase that ended in an error says nothing.
pub fn measured_by_probe(figures: &[Figure]) -> Vec<Measured> {
    let whole = figures.iter().filter(|figure| figure.failure.is_none());
    whole.filter_map(of_figure).collect()
}

fn of_figure(figure: &Figure) -> Option<Measured> {
    let metric = metric_of(figure.phase)?;
    let estimate = if metric.is_iops() {
        figure.iops
    } else {
        figure.bytes_per_s
    };
    Some(Measured {
        metric,
        per_s: estimate.mean,
        error: estimate.error,
        block_bytes: Some(figure.block_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Limits, Metric, Verdict};
    use crate::probe::{Estimate, Latency, Phase};
    use iosonde_job::plan::Engine;

    fn figure(phase: Phase, block_bytes: u64, iops: f64) -> Figure {
        let estimate = |mean| Estimate {
            mean,
            error: Some(mean / 100.0),
            spread: None,
        };
        Figure {
            phase,
            block_bytes,
            iodepth: 64,
            engine: Engine::IoUring,
            direct: true,
            iops: estimate(iops),
            bytes_per_s: estimate(iops * block_bytes as f64),
            latency: Latency::default(),
            sync_latency: None,
            measured_ns: 8_000_000_000,
            sure: Some(true),
            settled: Some(true),
            failure: None,
        }
    }

    #[test]
    fn a_probe_is_held_against_the_promise() {
        let figures = [
            figure(Phase::RandomRead, 4096, 14_900.0),
            figure(Phase::RandomWrite, 4096, 9000.0),
            figure(Phase::SequentialRead, 1 << 20, 419.0),
            figure(Phase::ReadLatency, 4096, 2000.0),
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
                (Metric::ReadIops, Verdict::Kept),
                (Metric::WriteIops, Verdict::Below),
                (Metric::ReadBandwidth, Verdict::Kept),
            ]
        );
        assert_eq!(judged[1].ratio, 0.6);
    }
}
