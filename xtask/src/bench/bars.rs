//! Bars: the ratios that iosonde has to reach beside other programs, and their verdicts.

use super::bench_target::BenchTargetKind;
use super::program::{ComparedBinary, ComparedProgram, LoopShape, RunSample};
use super::ratio::IntervalEstimate;
use serde::Serialize;
use std::cmp::Ordering;

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
    /// From the first to the second.
    Between(f64, f64),
}

impl RatioBound {
    /// The bound in words: `at most 0.25`.
    pub(super) fn text(self) -> String {
        match self {
            RatioBound::AtMost(most) => format!("at most {most}"),
            RatioBound::AtLeast(least) => format!("at least {least}"),
            RatioBound::Between(least, most) => format!("from {least} to {most}"),
        }
    }

    /// Whether a ratio is within the bound.
    pub(super) fn admits(self, ratio: f64) -> bool {
        self.compare(ratio) == Ordering::Equal
    }

    /// Where a ratio lies: below the admitted ratios, among them (`Equal`) or above.
    fn compare(self, ratio: f64) -> Ordering {
        let (least, most) = match self {
            RatioBound::AtMost(most) => (f64::NEG_INFINITY, most),
            RatioBound::AtLeast(least) => (least, f64::INFINITY),
            RatioBound::Between(least, most) => (least, most),
        };
        debug_assert!(least <= most, "a bound admits a ratio");
        if ratio < least {
            Ordering::Less
        } else if ratio <= most {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

/// A required ratio of two programs, or of two such ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Bar {
    pub(super) figure: ComparedFigure,
    pub(super) of: ComparedProgram,
    pub(super) over: ComparedProgram,
    /// Two programs whose ratio divides that of `of` and `over`, if there are any.
    pub(super) beside: Option<ProgramPair>,
    pub(super) limit: RatioBound,
}

/// The programs of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct ProgramPair {
    pub(super) numerator: ComparedProgram,
    pub(super) denominator: ComparedProgram,
}

impl Bar {
    const fn beside_fio(figure: ComparedFigure, limit: RatioBound) -> Bar {
        Bar::beside_fio_with(LoopShape::Plain, figure, limit)
    }

    /// A figure beside fio's with the same shape.
    const fn beside_fio_with(shape: LoopShape, figure: ComparedFigure, limit: RatioBound) -> Bar {
        Bar {
            figure,
            of: ComparedProgram::new(ComparedBinary::Iosonde, shape),
            over: ComparedProgram::new(ComparedBinary::Fio, shape),
            beside: None,
            limit,
        }
    }

    /// IOPS beside the bare loop with the same shape.
    const fn beside_bare_loop(shape: LoopShape, limit: RatioBound) -> Bar {
        Bar {
            figure: ComparedFigure::Iops,
            of: ComparedProgram::new(ComparedBinary::Iosonde, shape),
            over: ComparedProgram::new(ComparedBinary::BareLoop, shape),
            beside: None,
            limit,
        }
    }

    /// Whether the bar needs two free processors.
    pub(super) fn needs_two_cpus(&self) -> bool {
        self.of.shape == LoopShape::TwoWorkers
    }
}

/// Most user CPU per I/O, as a share of fio's.
const USER_CPU_SHARE: f64 = 0.1;

/// Most user CPU per I/O of engines with a system call for each I/O, as a share of fio's.
const USER_CPU_SHARE_OF_SINGLE_CALLS: f64 = 0.5;

/// IOPS of engines with a system call for each I/O, as a share of fio's.
const IOPS_OF_SINGLE_CALLS: f64 = 1.1;

/// Most IOPS beside a bare loop. A loop that is slower than this is no limit.
const MOST_OVER_BARE_LOOP: f64 = 1.1;

/// IOPS of two workers on two processors, as a multiple of one worker's. For a target without work
/// in the kernel.
const TWO_WORKERS: Bar = Bar {
    figure: ComparedFigure::Iops,
    of: ComparedProgram::new(ComparedBinary::Iosonde, LoopShape::TwoWorkers),
    over: ComparedProgram::IOSONDE,
    beside: None,
    limit: RatioBound::AtLeast(1.9),
};

/// The same multiple, as a share of the bare loop's on two threads: locks of the file that both
/// read limit both. Where the bare loop doubles, the bound is 1.9 again.
const TWO_WORKERS_ON_A_FILE: Bar = Bar {
    beside: Some(ProgramPair {
        numerator: ComparedProgram::new(ComparedBinary::BareLoop, LoopShape::TwoWorkers),
        denominator: ComparedProgram::BARE_LOOP,
    }),
    limit: RatioBound::AtLeast(0.95),
    ..TWO_WORKERS
};

/// Least IOPS beside the bare loop, by shape.
const BARE_LOOP_SHARES: [(LoopShape, f64); 7] = [
    (LoopShape::InBatches, 0.97),
    (LoopShape::Plain, 0.9),
    (LoopShape::Depth4, 0.9),
    (LoopShape::Depth1, 0.85),
    (LoopShape::Libaio, 0.9),
    (LoopShape::LibaioDepth1, 0.85),
    (LoopShape::Psync, 0.85),
];

/// Bars of the sparse file: beside fio, the bare loops and one worker.
fn sparse_bars() -> Vec<Bar> {
    let mut bars = vec![Bar::beside_fio(
        ComparedFigure::Iops,
        RatioBound::AtLeast(1.6),
    )];
    bars.extend(BARE_LOOP_SHARES.map(|(shape, least)| {
        Bar::beside_bare_loop(shape, RatioBound::Between(least, MOST_OVER_BARE_LOOP))
    }));
    for shape in [LoopShape::LibaioDepth1, LoopShape::Psync] {
        bars.push(Bar::beside_fio_with(
            shape,
            ComparedFigure::UserCpu,
            RatioBound::AtMost(USER_CPU_SHARE_OF_SINGLE_CALLS),
        ));
        bars.push(Bar::beside_fio_with(
            shape,
            ComparedFigure::Iops,
            RatioBound::AtLeast(IOPS_OF_SINGLE_CALLS),
        ));
    }
    bars.push(TWO_WORKERS_ON_A_FILE);
    bars
}

/// The bars for a kind of target.
pub(super) fn bench_bars(kind: BenchTargetKind) -> Vec<Bar> {
    let mut bars = vec![Bar::beside_fio(
        ComparedFigure::UserCpu,
        RatioBound::AtMost(USER_CPU_SHARE),
    )];
    match kind {
        BenchTargetKind::Null => {
            bars.push(Bar::beside_fio(
                ComparedFigure::Iops,
                RatioBound::AtLeast(4.0),
            ));
            bars.push(TWO_WORKERS);
        }
        BenchTargetKind::Sparse => bars.extend(sparse_bars()),
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
    let side = bar.limit.compare(ratio.value);
    let met = side == Ordering::Equal;
    let sure = ratio.interval.is_some_and(|(low, high)| {
        bar.limit.compare(low) == side && bar.limit.compare(high) == side
    });
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
        let bar = bench_bars(BenchTargetKind::Null)[1];
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
    fn two_sided_bound_admits_only_the_middle() {
        let bar = Bar::beside_bare_loop(LoopShape::Psync, RatioBound::Between(0.85, 1.1));
        assert_eq!(bar.limit.text(), "from 0.85 to 1.1");
        for (estimate, met, sure) in [
            (ratio(0.9, 1.0, 1.05), true, true),
            (ratio(0.8, 0.9, 1.0), true, false),
            (ratio(0.5, 1.0, 1.5), true, false),
            (ratio(1.0, 1.2, 1.4), false, false),
            (ratio(0.8, 1.2, 1.4), false, false),
            (ratio(1.15, 1.2, 1.3), false, true),
            (ratio(0.6, 0.7, 0.8), false, true),
        ] {
            let verdict = judge(bar, estimate);
            assert_eq!((verdict.met, verdict.sure), (met, sure), "{estimate:?}");
        }
    }

    #[test]
    fn two_workers_are_held_to_one_on_null_and_sparse() {
        for kind in BenchTargetKind::ALL {
            let expected = matches!(kind, BenchTargetKind::Null | BenchTargetKind::Sparse);
            let bars = bench_bars(kind);
            let bar = bars.iter().find(|bar| bar.needs_two_cpus());
            assert_eq!(bar.is_some(), expected, "{kind:?}");
            let is_beside_bare_loop = bar.is_some_and(|bar| bar.beside.is_some());
            assert_eq!(is_beside_bare_loop, kind == BenchTargetKind::Sparse);
        }
    }

    #[test]
    fn user_time_is_bounded_on_every_target() {
        for kind in BenchTargetKind::ALL {
            assert!(bench_bars(kind).contains(&Bar::beside_fio(
                ComparedFigure::UserCpu,
                RatioBound::AtMost(USER_CPU_SHARE)
            )));
        }
    }

    #[test]
    fn loop_shapes_are_held_against_the_bare_loop() {
        let bars = bench_bars(BenchTargetKind::Sparse);
        for shape in LoopShape::ALL {
            let bare = ComparedProgram::new(ComparedBinary::BareLoop, shape);
            let is_held =
                |bar: &&Bar| bar.over == bare || bar.beside.is_some_and(|it| it.numerator == bare);
            let bar = bars.iter().find(is_held);
            let of = bar.map(|bar| bar.of);
            let iosonde = ComparedProgram::new(ComparedBinary::Iosonde, shape);
            assert_eq!(of, Some(iosonde), "{shape:?}");
        }
    }
}
