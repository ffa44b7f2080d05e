//! Names of figures, as expectations and pivots write them: `randread.iops`, `wal.sync.p99`, `randread.max_iops`.

use super::outcome::FoundKind;
use iosonde_job::diagnostic::nearest;
use iosonde_result::compare::{Measure, Subject};
use std::fmt;

/// What is asked of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asked {
    /// A figure of a run.
    Measure(Measure),
    /// The highest I/Os per second of all parts of the name, or the maximum that a sweep found.
    MaxIops,
    /// The same in bytes per second.
    MaxBandwidth,
    /// The lowest depth at which a sweep found the maximum.
    Knee,
    /// The highest rate that keeps the objective of a load study.
    Rate,
    /// The I/Os per second at which a load study found the target saturated.
    Capacity,
}

const NAMES: [(&str, Asked); 30] = [
    ("iops", Asked::Measure(Measure::Iops)),
    ("bw", Asked::Measure(Measure::BytesPerS)),
    ("bandwidth", Asked::Measure(Measure::BytesPerS)),
    ("bytes_per_s", Asked::Measure(Measure::BytesPerS)),
    ("lat", Asked::Measure(Measure::LatMean)),
    ("mean", Asked::Measure(Measure::LatMean)),
    ("lat_mean", Asked::Measure(Measure::LatMean)),
    ("p50", Asked::Measure(Measure::LatP50)),
    ("lat_p50", Asked::Measure(Measure::LatP50)),
    ("p99", Asked::Measure(Measure::LatP99)),
    ("lat_p99", Asked::Measure(Measure::LatP99)),
    ("p99.9", Asked::Measure(Measure::LatP999)),
    ("p99_9", Asked::Measure(Measure::LatP999)),
    ("lat_p99.9", Asked::Measure(Measure::LatP999)),
    ("lat_p99_9", Asked::Measure(Measure::LatP999)),
    ("clat", Asked::Measure(Measure::ClatMean)),
    ("clat_mean", Asked::Measure(Measure::ClatMean)),
    ("clat_p50", Asked::Measure(Measure::ClatP50)),
    ("clat_p99", Asked::Measure(Measure::ClatP99)),
    ("clat_p99.9", Asked::Measure(Measure::ClatP999)),
    ("clat_p99_9", Asked::Measure(Measure::ClatP999)),
    ("max_iops", Asked::MaxIops),
    ("max_bw", Asked::MaxBandwidth),
    ("max_bandwidth", Asked::MaxBandwidth),
    ("max_bytes_per_s", Asked::MaxBandwidth),
    ("knee", Asked::Knee),
    ("rate", Asked::Rate),
    ("slo_rate", Asked::Rate),
    ("capacity", Asked::Capacity),
    ("saturation_iops", Asked::Capacity),
];

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// I/Os in flight.
    Depth,
}

impl Asked {
    /// What a person calls it.
    pub fn title(self) -> &'static str {
        match self {
            Asked::Measure(measure) => measure.title(),
            Asked::MaxIops => "highest IOPS",
            Asked::MaxBandwidth => "highest bandwidth",
            Asked::Knee => "depth at the knee",
            Asked::Rate => "highest rate that keeps the objective",
            Asked::Capacity => "IOPS at saturation",
        }
    }

    /// The unit of its numbers.
    pub fn unit(self) -> Unit {
        match self {
            Asked::MaxIops | Asked::Rate | Asked::Capacity | Asked::Measure(Measure::Iops) => {
                Unit::PerSecond
            }
            Asked::MaxBandwidth | Asked::Measure(Measure::BytesPerS) => Unit::BytesPerSecond,
            Asked::Knee => Unit::Depth,
            Asked::Measure(_) => Unit::Nanoseconds,
        }
    }

    /// The measure of a run that it is made of; `None` where a study finds it.
    pub fn measure(self) -> Option<Measure> {
        match self {
            Asked::Measure(measure) => Some(measure),
            Asked::MaxIops => Some(Measure::Iops),
            Asked::MaxBandwidth => Some(Measure::BytesPerS),
            Asked::Knee | Asked::Rate | Asked::Capacity => None,
        }
    }

    /// What a study finds of it beyond its runs.
    pub fn found(self) -> Option<FoundKind> {
        match self {
            Asked::Measure(_) => None,
            Asked::MaxIops => Some(FoundKind::MaxIops),
            Asked::MaxBandwidth => Some(FoundKind::MaxBytesPerS),
            Asked::Knee => Some(FoundKind::Knee),
            Asked::Rate => Some(FoundKind::Rate),
            Asked::Capacity => Some(FoundKind::Capacity),
        }
    }

    /// Whether less of it is better.
    pub fn is_better_low(self) -> bool {
        matches!(self.unit(), Unit::Nanoseconds | Unit::Depth)
    }

    /// Whether it is the highest of several.
    pub fn is_highest(self) -> bool {
        matches!(self, Asked::MaxIops | Asked::MaxBandwidth)
    }
}

impl Unit {
    /// A number for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::PerSecond => crate::words::iops(value),
            Unit::BytesPerSecond => crate::words::bandwidth(value),
            Unit::Nanoseconds => crate::words::latency(value),
            Unit::Depth => format!("{value:.0}"),
        }
    }
}

/// A figure by its name. Which parts are meant is known only beside those that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureName {
    /// Part, workload or pattern, and perhaps a subject; empty means all.
    pub(super) of: String,
    /// What is asked of it.
    pub asked: Asked,
}

/// Why a text is not the name of a figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a figure")]
pub struct NoFigure {
    text: String,
    /// What may be meant.
    pub help: String,
}

impl FigureName {
    /// From `[PART.][SUBJECT.]MEASURE`.
    ///
    /// # Errors
    /// If it does not end with a measure.
    pub fn parse(text: &str) -> Result<FigureName, NoFigure> {
        let text = text.trim();
        // The longest, as p99.9 holds a point.
        let fitting = NAMES.iter().filter_map(|(name, asked)| {
            let of = text.strip_suffix(name)?;
            match of.strip_suffix('.') {
                Some(of) if !of.is_empty() => Some((name.len(), of, *asked)),
                _ if of.is_empty() => Some((name.len(), "", *asked)),
                _ => None,
            }
        });
        match fitting.max_by_key(|(length, ..)| *length) {
            Some((_, of, asked)) => Ok(FigureName {
                of: of.to_owned(),
                asked,
            }),
            None => {
                let last = text.rsplit('.').next().unwrap_or_default();
                let names = NAMES.iter().map(|(name, _)| *name);
                Err(NoFigure {
                    text: text.to_owned(),
                    help: match nearest(last, names) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => "it ends with iops, bw, lat, p50, p99, p99.9, the same with clat_, max_iops, \
                                 max_bw, knee, rate or slo_rate, capacity or saturation_iops"
                            .to_owned(),
                    },
                })
            }
        }
    }

    /// Parts and subject that are meant, of those whose names, workloads and patterns are given. `None`: there is none.
    pub fn pick<'a, P: Named>(&self, parts: &'a [P]) -> Option<(Vec<&'a P>, Option<Subject>)> {
        if self.of.is_empty() {
            return Some((parts.iter().collect(), None));
        }
        if let Some(found) = called(parts, &self.of) {
            return Some((found, None));
        }
        let (of, last) = match self.of.rsplit_once('.') {
            Some((of, last)) => (Some(of), last),
            None => (None, self.of.as_str()),
        };
        let subject: Subject = last.parse().ok()?;
        match of {
            Some(of) => Some((called(parts, of)?, Some(subject))),
            None => Some((parts.iter().collect(), Some(subject))),
        }
    }
}

/// What can be meant by a name.
pub trait Named {
    /// Its own name.
    fn name(&self) -> &str;
    /// The workload that it is of.
    fn workload(&self) -> &str;
    /// fio's `rw`.
    fn rw(&self) -> &str;
}

impl<N: Named> Named for &N {
    fn name(&self) -> &str {
        (*self).name()
    }
    fn workload(&self) -> &str {
        (*self).workload()
    }
    fn rw(&self) -> &str {
        (*self).rw()
    }
}

/// By name, else by workload, else by pattern.
fn called<'a, P: Named>(parts: &'a [P], name: &str) -> Option<Vec<&'a P>> {
    let ways: [fn(&P) -> &str; 3] = [Named::name, Named::workload, Named::rw];
    ways.into_iter().find_map(|way| {
        let found: Vec<&P> = parts.iter().filter(|part| way(part) == name).collect();
        (!found.is_empty()).then_some(found)
    })
}

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of.is_empty() {
            true => write!(f, "{}", self.asked.title()),
            false => write!(f, "{} {}", self.of, self.asked.title()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Part(&'static str, &'static str, &'static str);

    impl Named for Part {
        fn name(&self) -> &str {
            self.0
        }
        fn workload(&self) -> &str {
            self.1
        }
        fn rw(&self) -> &str {
            self.2
        }
    }

    #[test]
    fn a_name_ends_with_the_longest_measure() {
        let parse = |text| FigureName::parse(text).unwrap();
        assert_eq!(parse("p99.9").asked, Asked::Measure(Measure::LatP999));
        assert_eq!(parse("p99.9").of, "");
        let sync = parse("wal.sync.p99");
        assert_eq!(
            (sync.of.as_str(), sync.asked.unit()),
            ("wal.sync", Unit::Nanoseconds)
        );
        assert_eq!(parse("a.max_iops").asked, Asked::MaxIops);
        assert!(
            FigureName::parse("iopss")
                .unwrap_err()
                .help
                .contains("`iops`")
        );
        assert!(FigureName::parse("a.").is_err() && FigureName::parse("").is_err());
    }

    #[test]
    fn parts_are_meant_by_name_workload_or_pattern() {
        let parts = [
            Part("randread-4k", "disk", "randread"),
            Part("randread-64k", "disk", "randread"),
            Part("read", "read", "write"),
        ];
        let pick = |text: &str| {
            let (parts, subject) = FigureName::parse(text).unwrap().pick(&parts)?;
            Some((parts.iter().map(|part| part.0).collect::<Vec<_>>(), subject))
        };
        let both = vec!["randread-4k", "randread-64k"];
        assert_eq!(pick("randread-4k.iops"), Some((vec!["randread-4k"], None)));
        assert_eq!(pick("disk.iops"), Some((both.clone(), None)));
        assert_eq!(pick("randread.iops"), Some((both, None)));
        // A job may be called as a subject is.
        assert_eq!(pick("read.iops"), Some((vec!["read"], None)));
        assert_eq!(
            pick("read.sync.p99"),
            Some((vec!["read"], Some(Subject::Sync)))
        );
        assert_eq!(pick("sync.p99").unwrap().1, Some(Subject::Sync));
        assert_eq!(pick("nothing.iops"), None);
    }
}
