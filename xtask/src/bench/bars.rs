//! Bars: the ratios that iosonde has to reach beside other programs, and their verdicts.

use super::bench_target::BenchTargetKind;
use super::program::{ComparedBinary, ComparedProgram, LoopShape, RunSample};
use super::ratio::IntervalEstimate;
use serde::Serialize;

/// A compared figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ComparedFigure {
    Iops,
    UserCpu,
    TotalCpu,
}

impl ComparedFigure {
    /// The figure of one run.
    pub(super) fn read_sample(self, sample: &RunSample) -> f64 {
        match self {
            ComparedFigure::Iops => sample.iops,
            ComparedFigure::UserCpu => sample.per_io.user_us,
            ComparedFigure::TotalCpu => sample.per_io.user_us + sample.per_io.system_us,
        }
    }

    /// Name of the figure in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            ComparedFigure::Iops => "IOPS",
            ComparedFigure::UserCpu => "user CPU per I/O",
            ComparedFigure::TotalCpu => "CPU per I/O",
        }
    }
}

/// The bound of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RatioBound {
    AtMost(f64),
    AtLeast(f64),
}

impl RatioBound {
    /// The bound in words: `at most 0.25`.
    pub(super) fn text(self) -> String {
        match self {
            RatioBound::AtMost(most) => format!("at most {most}"),
            RatioBound::AtLeast(least) => format!("at least {least}"),
        }
    }

    /// Whether a ratio is within the bound.
    pub(super) fn admits(self, ratio: f64) -> bool {
        match self {
            RatioBound::AtMost(most) => ratio <= most,
            RatioBound::AtLeast(least) => ratio >= least,
        }
    }
}

/// A required ratio of two programs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Bar {
    pub(super) figure: ComparedFigure,
    pub(super) of: ComparedProgram,
    pub(super) over: ComparedProgram,
    pub(super) limit: RatioBound,
}

impl Bar {
    const fn beside_fio(figure: ComparedFigure, limit: RatioBound) -> Bar {
        Bar {
            figure,
            of: ComparedProgram::IOSONDE,
            over: ComparedProgram::FIO,
            limit,
        }
    }

    /// IOPS beside the bare loop with the same shape.
    const fn beside_bare_loop(shape: LoopShape, least: f64) -> Bar {
        Bar {
            figure: ComparedFigure::Iops,
            of: ComparedProgram::new(ComparedBinary::Iosonde, shape),
            over: ComparedProgram::new(ComparedBinary::BareLoop, shape),
            limit: RatioBound::AtLeast(least),
        }
    }
}

/// Most user CPU per I/O, as a share of fio's.
const USER_CPU_SHARE: f64 = 0.1;

/// The bars for a kind of target.
pub(super) fn bars(kind: BenchTargetKind) -> Vec<Bar> {
    let mut bars = vec![Bar::beside_fio(
        ComparedFigure::UserCpu,
        RatioBound::AtMost(USER_CPU_SHARE),
    )];
    match kind {
        BenchTargetKind::Null => bars.push(Bar::beside_fio(
            ComparedFigure::Iops,
            RatioBound::AtLeast(4.0),
        )),
        BenchTargetKind::Sparse => {
            bars.push(Bar::beside_fio(
                ComparedFigure::Iops,
                RatioBound::AtLeast(1.6),
            ));
            bars.extend([
                Bar::beside_bare_loop(LoopShape::InBatches, 0.97),
                Bar::beside_bare_loop(LoopShape::Plain, 0.9),
                Bar::beside_bare_loop(LoopShape::Depth4, 0.9),
                Bar::beside_bare_loop(LoopShape::Depth1, 0.85),
            ]);
        }
        BenchTargetKind::Written => {
            bars.push(Bar::beside_fio(
                ComparedFigure::TotalCpu,
                RatioBound::AtMost(0.7),
            ));
            // fio keeps the device as busy as iodepth allows. Saving CPU time must not cost IOPS.
            bars.push(Bar::beside_fio(
                ComparedFigure::Iops,
                RatioBound::AtLeast(0.95),
            ));
        }
        BenchTargetKind::LoopDevice | BenchTargetKind::Memory => {}
    }
    bars
}

/// Loose bars for a short run on a busy machine: they detect gross regressions. Where a device
/// or a kernel worker limits the rate, clock ticks are too coarse for the user time of a short run.
pub(super) fn smoke_bars(kind: BenchTargetKind) -> Vec<Bar> {
    match kind {
        BenchTargetKind::Null | BenchTargetKind::Sparse => {
            vec![Bar::beside_fio(
                ComparedFigure::UserCpu,
                RatioBound::AtMost(1.0),
            )]
        }
        BenchTargetKind::Written | BenchTargetKind::LoopDevice | BenchTargetKind::Memory => {
            Vec::new()
        }
    }
}

/// Result of one bar.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct BarVerdict {
    pub(super) bar: Bar,
    pub(super) ratio: IntervalEstimate,
    pub(super) met: bool,
    /// Whether the whole confidence interval lies on one side of the bound.
    pub(super) sure: bool,
}

/// Compares a ratio with its bar.
pub(super) fn judge(bar: Bar, ratio: IntervalEstimate) -> BarVerdict {
    let met = bar.limit.admits(ratio.value);
    let sure = ratio
        .interval
        .is_some_and(|(low, high)| bar.limit.admits(low) == met && bar.limit.admits(high) == met);
    BarVerdict {
        bar,
        ratio,
        met,
        sure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, value: f64, high: f64) -> IntervalEstimate {
        IntervalEstimate {
            value,
            interval: Some((low, high)),
        }
    }

    #[test]
    fn verdict_follows_mean_and_reports_uncertainty() {
        let bar = bars(BenchTargetKind::Null)[1];
        assert_eq!(bar.limit, RatioBound::AtLeast(4.0));
        for (estimate, met, sure) in [
            (ratio(4.5, 5.0, 5.5), true, true),
            (ratio(3.9, 4.1, 4.3), true, false),
            (ratio(3.7, 3.9, 4.1), false, false),
            (ratio(3.0, 3.1, 3.2), false, true),
        ] {
            let verdict = judge(bar, estimate);
            assert_eq!((verdict.met, verdict.sure), (met, sure), "{estimate:?}");
        }
    }

    #[test]
    fn user_time_is_bounded_on_every_target() {
        for kind in BenchTargetKind::ALL {
            assert!(bars(kind).contains(&Bar::beside_fio(
                ComparedFigure::UserCpu,
                RatioBound::AtMost(USER_CPU_SHARE)
            )));
        }
    }

    #[test]
    fn loop_shapes_are_held_against_the_bare_loop() {
        let bars = bars(BenchTargetKind::Sparse);
        for shape in LoopShape::ALL {
            let bare = ComparedProgram::new(ComparedBinary::BareLoop, shape);
            let bar = bars.iter().find(|bar| bar.over == bare);
            let of = bar.map(|bar| bar.of);
            let iosonde = ComparedProgram::new(ComparedBinary::Iosonde, shape);
            assert_eq!(of, Some(iosonde), "{shape:?}");
        }
    }
}
