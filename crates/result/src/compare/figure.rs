//! A run reduced to the figures that can be compared.

use iosonde_job::plan::Direction;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One pattern of a run: a phase of a probe, or the clones of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Name of the job or phase.
    pub name: String,
    /// What it did.
    pub pattern: Pattern,
    /// What was found.
    pub figures: Vec<Figure>,
}

impl Part {
    /// One of its figures.
    pub fn figure(&self, subject: Subject, measure: Measure) -> Option<&Figure> {
        let is_it = |figure: &&Figure| figure.subject == subject && figure.measure == measure;
        self.figures.iter().find(is_it)
    }
}

/// What a job did: what must agree for two figures to be about the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Pattern {
    /// fio's `rw`, e.g. `randread`.
    pub rw: String,
    /// Block size in fio's words, in bytes where it is a single number.
    pub bs: String,
    /// I/Os in flight for each clone.
    pub iodepth: u32,
    /// Clones.
    pub numjobs: u32,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pattern {
            rw,
            bs,
            iodepth,
            numjobs,
        } = self;
        write!(f, "{rw}, bs {bs}, iodepth {iodepth}, numjobs {numjobs}")
    }
}

/// One number with what is known of its error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Of which I/O.
    pub subject: Subject,
    /// What was measured.
    pub measure: Measure,
    /// The number, in the unit of `measure`. Above zero.
    pub value: f64,
    /// Its 95 % confidence interval; `None` where it is not known.
    pub bounds: Option<Bounds>,
    /// Whether the rate held still while it was measured; `None` where it cannot be told.
    pub settled: Option<bool>,
}

/// A 95 % confidence interval around a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Lower end; 0 where nothing is known of it.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Degrees of freedom of the Student's t by which it is widened to another level of confidence.
    pub freedom: f64,
    /// Factor by which the interval is wider that holds for another run of the same length: slow variation that this run
    /// shows, or is too short to exclude. 1 where the interval is of several runs.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub repeat_factor: f64,
    /// What it was made from.
    pub basis: Basis,
}

fn one() -> f64 {
    1.0
}

fn is_one(factor: &f64) -> bool {
    *factor == 1.0
}

impl Bounds {
    /// The interval where it says something: not one that reaches zero or twice the value. Such a figure is not known.
    pub(super) fn if_telling(self, value: f64) -> Option<Bounds> {
        let ends = telling_interval(value, (self.low, self.high));
        ends.map(|_| self)
    }
}

/// The ends of an interval where they say something: not those of one that reaches zero, or twice the value that it is around.
/// Such a value is not known, and nothing that people read shows its interval.
pub fn telling_interval(value: f64, (low, high): (f64, f64)) -> Option<(f64, f64)> {
    (low > 0.0 && high <= 2.0 * value).then_some((low, high))
}

/// What an interval was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The run interval by interval.
    Series,
    /// The spread of the thirds of a run that is too short for its correlation.
    Thirds,
    /// The slowest variation of a run that drifted.
    Drift,
    /// Number, mean and deviation of its samples only.
    Samples,
    /// Several runs on one machine.
    Runs,
    /// Runs on several machines.
    Machines,
    /// Not measured: drawn from what was measured near it.
    Predicted,
}

impl Basis {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Series => "series",
            Basis::Thirds => "thirds",
            Basis::Drift => "drift",
            Basis::Samples => "samples",
            Basis::Runs => "runs",
            Basis::Machines => "machines",
            Basis::Predicted => "predicted",
        }
    }

    /// From [`Basis::name`].
    pub fn from_name(name: &str) -> Option<Basis> {
        use Basis::{Drift, Machines, Predicted, Runs, Samples, Series, Thirds};
        [Series, Thirds, Drift, Samples, Runs, Machines, Predicted]
            .into_iter()
            .find(|basis| basis.name() == name)
    }
}

/// Which I/O a figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
}

impl Subject {
    /// All of them, in the order of reports.
    pub const ALL: [Subject; 5] = [
        Subject::Read,
        Subject::Write,
        Subject::Trim,
        Subject::Mixed,
        Subject::Sync,
    ];

    /// fio's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Read => "read",
            Subject::Write => "write",
            Subject::Trim => "trim",
            Subject::Mixed => "mixed",
            Subject::Sync => "sync",
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

/// What is measured. Latencies are in nanoseconds; `Lat` counts from before submission, `Clat` from after it, as in fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    BytesPerS,
    /// Mean total latency.
    LatMean,
    /// Median of it.
    LatP50,
    /// 99th percentile of it.
    LatP99,
    /// 99.9th percentile of it.
    #[serde(rename = "lat_p99_9")]
    LatP999,
    /// Mean completion latency.
    ClatMean,
    /// Median of it.
    ClatP50,
    /// 99th percentile of it.
    ClatP99,
    /// 99.9th percentile of it.
    #[serde(rename = "clat_p99_9")]
    ClatP999,
}

impl Measure {
    /// All of them, in the order of reports.
    pub const ALL: [Measure; 10] = [
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
    ];

    /// Its name in files, as in JSON.
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
        }
    }

    /// What a person calls it.
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
        }
    }

    /// Whether a larger number is a faster device.
    pub fn more_is_faster(self) -> bool {
        matches!(self, Measure::Iops | Measure::BytesPerS)
    }

    /// The same of total latency, for a measure of completion latency.
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
