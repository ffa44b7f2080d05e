//! What iosonde is held to, and whether it gets there.

use super::place::Kind;
use super::program::{Program, Sample};
use super::ratio::Estimate;
use serde::Serialize;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Figure {
    Iops,
    UserCpu,
    TotalCpu,
}

impl Figure {
    /// The figure of one run.
    pub(super) fn of(self, sample: &Sample) -> f64 {
        match self {
            Figure::Iops => sample.iops,
            Figure::UserCpu => sample.per_io.user_us,
            Figure::TotalCpu => sample.per_io.user_us + sample.per_io.system_us,
        }
    }

    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Figure::Iops => "IOPS",
            Figure::UserCpu => "user CPU per I/O",
            Figure::TotalCpu => "CPU per I/O",
        }
    }
}

/// Where a ratio has to lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    /// In words.
    pub(super) fn text(self) -> String {
        match self {
            Limit::AtMost(most) => format!("at most {most}"),
            Limit::AtLeast(least) => format!("at least {least}"),
        }
    }

    /// Whether a ratio is within it.
    pub(super) fn admits(self, ratio: f64) -> bool {
        match self {
            Limit::AtMost(most) => ratio <= most,
            Limit::AtLeast(least) => ratio >= least,
        }
    }
}

/// A promise about the ratio of two programs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Bar {
    pub(super) figure: Figure,
    pub(super) of: Program,
    pub(super) over: Program,
    pub(super) limit: Limit,
}

impl Bar {
    const fn beside_fio(figure: Figure, limit: Limit) -> Bar {
        Bar {
            figure,
            of: Program::Iosonde,
            over: Program::Fio,
            limit,
        }
    }
}

/// The bars for a kind of target.
pub(super) fn bars(kind: Kind) -> Vec<Bar> {
    let mut bars = vec![Bar::beside_fio(Figure::UserCpu, Limit::AtMost(0.25))];
    match kind {
        Kind::Null => bars.push(Bar::beside_fio(Figure::Iops, Limit::AtLeast(4.0))),
        Kind::Sparse => {
            bars.push(Bar::beside_fio(Figure::Iops, Limit::AtLeast(1.6)));
            bars.push(Bar {
                figure: Figure::Iops,
                of: Program::IosondeInBatches,
                over: Program::BareLoop,
                limit: Limit::AtLeast(0.9),
            });
        }
        Kind::Written => {
            bars.push(Bar::beside_fio(Figure::TotalCpu, Limit::AtMost(0.7)));
            // fio keeps the device as busy as its queue allows; what saves processor time must not cost I/Os.
            bars.push(Bar::beside_fio(Figure::Iops, Limit::AtLeast(0.95)));
        }
        Kind::LoopDevice | Kind::Memory => {}
    }
    bars
}

/// What a short run on a busy machine can still promise: that nothing is badly wrong. Where a device or the kernel's workers
/// hold the programs up, a fraction of a second is too short for the clock ticks that count user time.
pub(super) fn smoke_bars(kind: Kind) -> Vec<Bar> {
    match kind {
        Kind::Null | Kind::Sparse => {
            vec![Bar::beside_fio(Figure::UserCpu, Limit::AtMost(1.0))]
        }
        Kind::Written | Kind::LoopDevice | Kind::Memory => Vec::new(),
    }
}

/// How a bar was met.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub(super) bar: Bar,
    pub(super) ratio: Estimate,
    pub(super) met: bool,
    /// The whole confidence interval is on the same side of the limit.
    pub(super) sure: bool,
}

/// Holds a ratio against its bar.
pub(super) fn judge(bar: Bar, ratio: Estimate) -> Verdict {
    let met = bar.limit.admits(ratio.value);
    let sure = ratio
        .interval
        .is_some_and(|(low, high)| bar.limit.admits(low) == met && bar.limit.admits(high) == met);
    Verdict {
        bar,
        ratio,
        met,
        sure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, value: f64, high: f64) -> Estimate {
        Estimate {
            value,
            interval: Some((low, high)),
        }
    }

    #[test]
    fn a_verdict_goes_by_the_mean_and_says_when_it_is_unsure() {
        let bar = bars(Kind::Null)[1];
        assert_eq!(bar.limit, Limit::AtLeast(4.0));
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
    fn every_target_bounds_user_time() {
        for kind in Kind::ALL {
            assert!(bars(kind).contains(&Bar::beside_fio(Figure::UserCpu, Limit::AtMost(0.25))));
        }
    }
}
