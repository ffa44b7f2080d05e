//! A run reduced to comparable figures.

use iosonde_job::plan::Direction;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One pattern of a run: a phase of a probe, or the clones of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultPart {
    /// Name of the job or phase.
    pub name: String,
    /// Pattern of the I/O.
    pub pattern: IoPattern,
    /// Measured figures.
    pub figures: Vec<Figure>,
    /// Place of the part in a run with a neighbour. Documents of older versions do not have it.
    #[serde(default, skip_serializing_if = "PartRole::is_alone")]
    pub role: PartRole,
}

impl ResultPart {
    /// Returns the figure of a subject and measure.
    pub fn figure(&self, subject: Subject, measure: Measure) -> Option<&Figure> {
        let is_it = |figure: &&Figure| figure.subject == subject && figure.measure == measure;
        self.figures.iter().find(is_it)
    }
}

/// Place of a part in a run with a neighbour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum PartRole {
    /// Measured without a neighbour, as far as is known.
    #[default]
    Alone,
    /// Jobs that ran beside a neighbour.
    #[serde(rename = "beside")]
    BesideNeighbour,
    /// The neighbour.
    Neighbour,
}

impl PartRole {
    /// All roles.
    pub const ALL: [PartRole; 3] = [
        PartRole::Alone,
        PartRole::BesideNeighbour,
        PartRole::Neighbour,
    ];

    /// Returns the name in files, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PartRole::Alone => "alone",
            PartRole::BesideNeighbour => "beside",
            PartRole::Neighbour => "neighbour",
        }
    }

    /// Whether no neighbour is known.
    pub(super) fn is_alone(&self) -> bool {
        *self == PartRole::Alone
    }
}

impl FromStr for PartRole {
    type Err = ();

    fn from_str(name: &str) -> Result<PartRole, ()> {
        let found = PartRole::ALL.into_iter().find(|each| each.name() == name);
        found.ok_or(())
    }
}

/// Pattern of a job. Two figures are comparable only if their patterns agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct IoPattern {
    /// fio's `rw`, e.g. `randread`.
    pub rw: String,
    /// Block size as in fio, in bytes if it is a single number.
    pub bs: String,
    /// I/Os in flight per clone.
    pub iodepth: u32,
    /// Number of clones.
    pub numjobs: u32,
}

impl IoPattern {
    /// Returns the block size. `None`: it is a range or that of a trace.
    #[must_use]
    pub fn block_bytes(&self) -> Option<u64> {
        self.bs.parse().ok()
    }
}

impl fmt::Display for IoPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IoPattern {
            rw,
            bs,
            iodepth,
            numjobs,
        } = self;
        write!(f, "{rw}, bs {bs}, iodepth {iodepth}, numjobs {numjobs}")
    }
}

/// A value with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The I/O that the figure concerns.
    pub subject: Subject,
    /// The measured quantity.
    pub measure: Measure,
    /// Value in the unit of `measure`. Above zero.
    pub value: f64,
    /// The 95 % confidence interval. `None` if it is not known.
    pub bounds: Option<Bounds>,
    /// Whether the rate was steady during the measurement. `None` if unknown.
    pub settled: Option<bool>,
}

/// A 95 % confidence interval around a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Lower end. 0 if it is not known.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Degrees of freedom of Student's t, to convert the interval to another confidence level.
    pub freedom: f64,
    /// Ratio of the interval for another run of the same length to this one, from slow variation
    /// that this run shows, or is too short to exclude. 1 for several runs.
    #[serde(default = "default_repeat_factor", skip_serializing_if = "is_one")]
    pub repeat_factor: f64,
    /// Source of the interval.
    pub basis: IntervalBasis,
}

fn default_repeat_factor() -> f64 {
    1.0
}

fn is_one(factor: &f64) -> bool {
    *factor == 1.0
}

impl Bounds {
    /// Returns the interval if it is informative: it reaches neither zero nor twice the value.
    pub(super) fn if_telling(self, value: f64) -> Option<Bounds> {
        let ends = informative_interval(value, (self.low, self.high));
        ends.map(|_| self)
    }
}

/// Returns the ends of an interval if it is informative. An interval that reaches zero or twice its
/// value is not: the value counts as not known, and reports do not show the interval.
pub fn informative_interval(value: f64, (low, high): (f64, f64)) -> Option<(f64, f64)> {
    (low > 0.0 && high <= 2.0 * value).then_some((low, high))
}

/// Source of a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalBasis {
    /// Time series of the run.
    Series,
    /// Spread of the means of thirds, for a run that is too short to estimate its autocorrelation.
    Thirds,
    /// Slowest variation of a run that drifted.
    Drift,
    /// Number, mean and standard deviation of the samples only.
    Samples,
    /// Several runs on one machine.
    Runs,
    /// Runs on several machines.
    Machines,
    /// Not measured: interpolated from measured figures nearby.
    Predicted,
}

impl IntervalBasis {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            IntervalBasis::Series => "series",
            IntervalBasis::Thirds => "thirds",
            IntervalBasis::Drift => "drift",
            IntervalBasis::Samples => "samples",
            IntervalBasis::Runs => "runs",
            IntervalBasis::Machines => "machines",
            IntervalBasis::Predicted => "predicted",
        }
    }

    /// Returns the basis with a name given by [`IntervalBasis::name`].
    pub fn from_name(name: &str) -> Option<IntervalBasis> {
        use IntervalBasis::{Drift, Machines, Predicted, Runs, Samples, Series, Thirds};
        [Series, Thirds, Drift, Samples, Runs, Machines, Predicted]
            .into_iter()
            .find(|basis| basis.name() == name)
    }
}

/// The I/O that a figure concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// All directions together (`unified_rw_reporting=mixed`).
    Mixed,
    /// fsync, fdatasync and sync_file_range.
    Sync,
    /// A stage in the life of volumes, which the name of the part says.
    #[serde(rename = "stage")]
    LifecycleStage,
    /// A command of a suite.
    Command,
}

const _: () = assert!(Subject::ALL.len() == Subject::Command as usize + 1);

impl Subject {
    /// All subjects, in the order of reports.
    pub const ALL: [Subject; 7] = [
        Subject::Read,
        Subject::Write,
        Subject::Trim,
        Subject::Mixed,
        Subject::Sync,
        Subject::LifecycleStage,
        Subject::Command,
    ];

    /// Returns fio's name.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Read => "read",
            Subject::Write => "write",
            Subject::Trim => "trim",
            Subject::Mixed => "mixed",
            Subject::Sync => "sync",
            Subject::LifecycleStage => "stage",
            Subject::Command => "command",
        }
    }
}

impl From<Direction> for Subject {
    fn from(direction: Direction) -> Subject {
        match direction {
            Direction::Read => Subject::Read,
            Direction::Write => Subject::Write,
            Direction::Trim => Subject::Trim,
        }
    }
}

impl FromStr for Subject {
    type Err = ();

    fn from_str(name: &str) -> Result<Subject, ()> {
        let found = Subject::ALL.into_iter().find(|each| each.name() == name);
        found.ok_or(())
    }
}

/// A measured quantity. Latencies are in ns. As in fio, `Lat` includes submission, `Clat` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    BytesPerS,
    /// Mean total latency.
    LatMean,
    /// Median of the total latency.
    LatP50,
    /// 99th percentile of the total latency.
    LatP99,
    /// 99.9th percentile of the total latency.
    #[serde(rename = "lat_p99_9")]
    LatP999,
    /// Mean completion latency.
    ClatMean,
    /// Median of the completion latency.
    ClatP50,
    /// 99th percentile of the completion latency.
    ClatP99,
    /// 99.9th percentile of the completion latency.
    #[serde(rename = "clat_p99_9")]
    ClatP999,
    /// The figure that a command printed, in its own unit, which is no unit of time.
    CommandFigure,
}

impl Measure {
    /// All measures, in the order of reports.
    pub const ALL: [Measure; 11] = [
        Measure::Iops,
        Measure::BytesPerS,
        Measure::LatMean,
        Measure::LatP50,
        Measure::LatP99,
        Measure::LatP999,
        Measure::ClatMean,
        Measure::ClatP50,
        Measure::ClatP99,
        Measure::ClatP999,
        Measure::CommandFigure,
    ];

    /// Returns the name in files, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Iops => "iops",
            Measure::BytesPerS => "bytes_per_s",
            Measure::LatMean => "lat_mean",
            Measure::LatP50 => "lat_p50",
            Measure::LatP99 => "lat_p99",
            Measure::LatP999 => "lat_p99_9",
            Measure::ClatMean => "clat_mean",
            Measure::ClatP50 => "clat_p50",
            Measure::ClatP99 => "clat_p99",
            Measure::ClatP999 => "clat_p99_9",
            Measure::CommandFigure => "command_figure",
        }
    }

    /// Returns the name for people.
    pub fn title(self) -> &'static str {
        match self {
            Measure::Iops => "IOPS",
            Measure::BytesPerS => "bandwidth",
            Measure::LatMean => "mean latency",
            Measure::LatP50 => "p50 latency",
            Measure::LatP99 => "p99 latency",
            Measure::LatP999 => "p99.9 latency",
            Measure::ClatMean => "mean clat",
            Measure::ClatP50 => "p50 clat",
            Measure::ClatP99 => "p99 clat",
            Measure::ClatP999 => "p99.9 clat",
            Measure::CommandFigure => "figure",
        }
    }

    /// Returns the title without the word "latency", for values whose unit says the same.
    pub fn short_title(self) -> &'static str {
        match self {
            Measure::LatMean => "mean",
            Measure::LatP50 => "p50",
            Measure::LatP99 => "p99",
            Measure::LatP999 => "p99.9",
            Measure::Iops
            | Measure::BytesPerS
            | Measure::ClatMean
            | Measure::ClatP50
            | Measure::ClatP99
            | Measure::ClatP999
            | Measure::CommandFigure => self.title(),
        }
    }

    /// Returns whether a larger value means a faster device.
    pub fn more_is_faster(self) -> bool {
        matches!(
            self,
            Measure::Iops | Measure::BytesPerS | Measure::CommandFigure
        )
    }

    /// Returns the corresponding measure of total latency, for a measure of completion latency.
    pub fn of_total(self) -> Option<Measure> {
        Some(match self {
            Measure::ClatMean => Measure::LatMean,
            Measure::ClatP50 => Measure::LatP50,
            Measure::ClatP99 => Measure::LatP99,
            Measure::ClatP999 => Measure::LatP999,
            _ => return None,
        })
    }
}

impl FromStr for Measure {
    type Err = ();

    fn from_str(name: &str) -> Result<Measure, ()> {
        let found = Measure::ALL.into_iter().find(|each| each.name() == name);
        found.ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn subjects_measures_and_roles_are_all_listed() {
        assert_eq!(Subject::ALL, Subject::VARIANTS);
        assert_eq!(Measure::ALL, Measure::VARIANTS);
        assert_eq!(PartRole::ALL, PartRole::VARIANTS);
    }

    #[test]
    fn role_in_json_has_the_name_of_tables() {
        for role in PartRole::ALL {
            let json = serde_json::to_value(role).unwrap();
            assert_eq!(json, role.name());
            assert_eq!(role.name().parse::<PartRole>(), Ok(role));
        }
    }

    #[test]
    fn part_without_role_is_read_as_alone() {
        let pattern = r#"{"rw":"read","bs":"4096","iodepth":1,"numjobs":1}"#;
        let old = format!(r#"{{"name":"wal","pattern":{pattern},"figures":[]}}"#);
        let mut part: ResultPart = serde_json::from_str(&old).unwrap();
        assert_eq!(part.role, PartRole::Alone);
        assert_eq!(serde_json::to_string(&part).unwrap(), old);
        part.role = PartRole::Neighbour;
        let json = serde_json::to_value(&part).unwrap();
        assert_eq!(json["role"], "neighbour");
    }
}
