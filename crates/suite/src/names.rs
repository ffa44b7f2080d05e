//! Figure names of expectations and pivots: `randread.iops`, `wal.sync.p99`, `randread.max_iops`.

use super::study_figure_kind::StudyFigureKind;
use iosonde_job::diagnostic::nearest;
use iosonde_result::compare::{Measure, Subject};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The quantity that a figure name asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FigureQuantity {
    /// A figure of a run.
    Measure(Measure),
    /// The highest IOPS of all named parts, or the maximum that a sweep found.
    MaxIops,
    /// The highest bandwidth in bytes per second, likewise.
    MaxBandwidth,
    /// The lowest depth at which a sweep reached the maximum.
    Knee,
    /// The highest rate of a load study that keeps its objective.
    Rate,
    /// The IOPS at which a load study found the target saturated.
    Capacity,
    /// The figure that a command printed.
    CommandFigure,
}

const NAMES: [(&str, FigureQuantity); 31] = [
    ("iops", FigureQuantity::Measure(Measure::Iops)),
    ("bw", FigureQuantity::Measure(Measure::BytesPerS)),
    ("bandwidth", FigureQuantity::Measure(Measure::BytesPerS)),
    ("bytes_per_s", FigureQuantity::Measure(Measure::BytesPerS)),
    ("lat", FigureQuantity::Measure(Measure::LatMean)),
    ("mean", FigureQuantity::Measure(Measure::LatMean)),
    ("lat_mean", FigureQuantity::Measure(Measure::LatMean)),
    ("p50", FigureQuantity::Measure(Measure::LatP50)),
    ("lat_p50", FigureQuantity::Measure(Measure::LatP50)),
    ("p99", FigureQuantity::Measure(Measure::LatP99)),
    ("lat_p99", FigureQuantity::Measure(Measure::LatP99)),
    ("p99.9", FigureQuantity::Measure(Measure::LatP999)),
    ("p99_9", FigureQuantity::Measure(Measure::LatP999)),
    ("lat_p99.9", FigureQuantity::Measure(Measure::LatP999)),
    ("lat_p99_9", FigureQuantity::Measure(Measure::LatP999)),
    ("clat", FigureQuantity::Measure(Measure::ClatMean)),
    ("clat_mean", FigureQuantity::Measure(Measure::ClatMean)),
    ("clat_p50", FigureQuantity::Measure(Measure::ClatP50)),
    ("clat_p99", FigureQuantity::Measure(Measure::ClatP99)),
    ("clat_p99.9", FigureQuantity::Measure(Measure::ClatP999)),
    ("clat_p99_9", FigureQuantity::Measure(Measure::ClatP999)),
    ("max_iops", FigureQuantity::MaxIops),
    ("max_bw", FigureQuantity::MaxBandwidth),
    ("max_bandwidth", FigureQuantity::MaxBandwidth),
    ("max_bytes_per_s", FigureQuantity::MaxBandwidth),
    ("knee", FigureQuantity::Knee),
    ("rate", FigureQuantity::Rate),
    ("slo_rate", FigureQuantity::Rate),
    ("capacity", FigureQuantity::Capacity),
    ("saturation_iops", FigureQuantity::Capacity),
    ("figure", FigureQuantity::CommandFigure),
];

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// I/Os per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// I/Os in flight.
    Depth,
    /// The unit of a command's figure, which only the command knows.
    OfCommand,
}

impl FigureQuantity {
    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            FigureQuantity::Measure(measure) => measure.title(),
            FigureQuantity::MaxIops => "highest IOPS",
            FigureQuantity::MaxBandwidth => "highest bandwidth",
            FigureQuantity::Knee => "depth at the knee",
            FigureQuantity::Rate => "highest rate that keeps the objective",
            FigureQuantity::Capacity => "IOPS at saturation",
            FigureQuantity::CommandFigure => "figure",
        }
    }

    /// The unit of the figure.
    pub fn unit(self) -> FigureUnit {
        match self {
            FigureQuantity::MaxIops
            | FigureQuantity::Rate
            | FigureQuantity::Capacity
            | FigureQuantity::Measure(Measure::Iops) => FigureUnit::PerSecond,
            FigureQuantity::MaxBandwidth | FigureQuantity::Measure(Measure::BytesPerS) => {
                FigureUnit::BytesPerSecond
            }
            FigureQuantity::Knee => FigureUnit::Depth,
            FigureQuantity::CommandFigure => FigureUnit::OfCommand,
            FigureQuantity::Measure(_) => FigureUnit::Nanoseconds,
        }
    }

    /// The measure of a run behind the figure; `None` if only a study finds it.
    pub fn measure(self) -> Option<Measure> {
        match self {
            FigureQuantity::Measure(measure) => Some(measure),
            FigureQuantity::MaxIops => Some(Measure::Iops),
            FigureQuantity::MaxBandwidth => Some(Measure::BytesPerS),
            FigureQuantity::Knee
            | FigureQuantity::Rate
            | FigureQuantity::Capacity
            | FigureQuantity::CommandFigure => None,
        }
    }

    /// The figure of a study; `None` for figures of runs.
    pub fn study_figure_kind(self) -> Option<StudyFigureKind> {
        match self {
            FigureQuantity::Measure(_) => None,
            FigureQuantity::MaxIops => Some(StudyFigureKind::MaxIops),
            FigureQuantity::MaxBandwidth => Some(StudyFigureKind::MaxBytesPerS),
            FigureQuantity::Knee => Some(StudyFigureKind::Knee),
            FigureQuantity::Rate => Some(StudyFigureKind::Rate),
            FigureQuantity::Capacity => Some(StudyFigureKind::Capacity),
            FigureQuantity::CommandFigure => Some(StudyFigureKind::CommandFigure),
        }
    }

    /// Whether a lower figure is better.
    pub fn is_better_low(self) -> bool {
        matches!(self.unit(), FigureUnit::Nanoseconds | FigureUnit::Depth)
    }

    /// Whether the figure is the highest of several.
    pub fn is_highest(self) -> bool {
        matches!(self, FigureQuantity::MaxIops | FigureQuantity::MaxBandwidth)
    }
}

impl FigureUnit {
    /// Formats a number for people.
    pub fn show(self, value: f64) -> String {
        match self {
            FigureUnit::PerSecond => iosonde_result::words::iops_text(value),
            FigureUnit::BytesPerSecond => iosonde_result::words::bandwidth(value),
            FigureUnit::Nanoseconds => iosonde_result::words::latency(value),
            FigureUnit::Depth => format!("{value:.0}"),
            FigureUnit::OfCommand => iosonde_result::words::three_digits(value),
        }
    }
}

/// A parsed figure name. Only the parts of a suite decide which of them it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureName {
    /// Part, workload or pattern, optionally with a subject; empty for all parts.
    pub(super) of: String,
    /// The quantity.
    pub asked: FigureQuantity,
}

/// The error for a text that is no figure name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a figure")]
pub struct NoFigure {
    text: String,
    /// The suggested name.
    pub help: String,
}

impl FigureName {
    /// Parses `[PART.][SUBJECT.]MEASURE`.
    ///
    /// # Errors
    /// Fails if the text does not end with a measure.
    pub fn parse(text: &str) -> Result<FigureName, NoFigure> {
        let text = text.trim();
        // The longest measure wins, since p99.9 contains a dot.
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
                        None => "valid endings: iops, bw, lat, p50, p99, p99.9, the same with \
                                 clat_, max_iops, max_bw, knee, rate or slo_rate, capacity or \
                                 saturation_iops, figure"
                            .to_owned(),
                    },
                })
            }
        }
    }

    /// Returns the name of the same figure of one part: `log.sync.p99` for the part `log` and the
    /// subject `sync`.
    pub fn of_part(&self, part: &str, subject: Option<Subject>) -> String {
        let subject = subject.map_or(String::new(), |subject| format!("{}.", subject.name()));
        let known = NAMES.iter().find(|(_, asked)| *asked == self.asked);
        let measure = known.map_or("", |(name, _)| *name);
        format!("{part}.{subject}{measure}")
    }

    /// The named parts and subject; `None` if no part has the name, workload or pattern.
    pub fn pick<'a, P: NamedPart>(&self, parts: &'a [P]) -> Option<(Vec<&'a P>, Option<Subject>)> {
        if self.of.is_empty() {
            return Some((parts.iter().collect(), None));
        }
        if let Some(found) = find_parts(parts, &self.of) {
            return Some((found, None));
        }
        let (of, last) = match self.of.rsplit_once('.') {
            Some((of, last)) => (Some(of), last),
            None => (None, self.of.as_str()),
        };
        let subject: Subject = last.parse().ok()?;
        match of {
            Some(of) => Some((find_parts(parts, of)?, Some(subject))),
            None => Some((parts.iter().collect(), Some(subject))),
        }
    }
}

/// A part that figure names can select.
pub trait NamedPart {
    /// Name of the part.
    fn name(&self) -> &str;
    /// Workload of the part.
    fn workload(&self) -> &str;
    /// fio's `rw`.
    fn rw(&self) -> &str;
}

impl<N: NamedPart> NamedPart for &N {
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

/// Finds parts by name, else by workload, else by pattern.
fn find_parts<'a, P: NamedPart>(parts: &'a [P], name: &str) -> Option<Vec<&'a P>> {
    let ways: [fn(&P) -> &str; 3] = [NamedPart::name, NamedPart::workload, NamedPart::rw];
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

    struct TestPart(&'static str, &'static str, &'static str);

    impl NamedPart for TestPart {
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
    fn figure_name_ends_with_longest_measure() {
        let parse = |text| FigureName::parse(text).unwrap();
        assert_eq!(
            parse("p99.9").asked,
            FigureQuantity::Measure(Measure::LatP999)
        );
        assert_eq!(parse("p99.9").of, "");
        let sync = parse("wal.sync.p99");
        assert_eq!(
            (sync.of.as_str(), sync.asked.unit()),
            ("wal.sync", FigureUnit::Nanoseconds)
        );
        assert_eq!(parse("a.max_iops").asked, FigureQuantity::MaxIops);
        assert!(
            FigureName::parse("iopss")
                .unwrap_err()
                .help
                .contains("`iops`")
        );
        assert!(FigureName::parse("a.").is_err() && FigureName::parse("").is_err());
    }

    #[test]
    fn figure_name_of_a_part_is_parsed() {
        for (text, subject, of_part) in [
            ("bandwidth", None, "log.bw"),
            ("sync.p99_9", Some(Subject::Sync), "log.sync.p99.9"),
            ("slo_rate", None, "log.rate"),
        ] {
            let figure = FigureName::parse(text).unwrap();
            let name = figure.of_part("log", subject);
            assert_eq!(name, of_part);
            assert_eq!(FigureName::parse(&name).unwrap().asked, figure.asked);
        }
    }

    #[test]
    fn parts_are_selected_by_name_workload_or_pattern() {
        let parts = [
            TestPart("randread-4k", "disk", "randread"),
            TestPart("randread-64k", "disk", "randread"),
            TestPart("read", "read", "write"),
        ];
        let pick = |text: &str| {
            let (parts, subject) = FigureName::parse(text).unwrap().pick(&parts)?;
            Some((parts.iter().map(|part| part.0).collect::<Vec<_>>(), subject))
        };
        let both = vec!["randread-4k", "randread-64k"];
        assert_eq!(pick("randread-4k.iops"), Some((vec!["randread-4k"], None)));
        assert_eq!(pick("disk.iops"), Some((both.clone(), None)));
        assert_eq!(pick("randread.iops"), Some((both, None)));
        // The name of a job may equal that of a subject.
        assert_eq!(pick("read.iops"), Some((vec!["read"], None)));
        assert_eq!(
            pick("read.sync.p99"),
            Some((vec!["read"], Some(Subject::Sync)))
        );
        assert_eq!(pick("sync.p99").unwrap().1, Some(Subject::Sync));
        assert_eq!(pick("nothing.iops"), None);
    }
}
