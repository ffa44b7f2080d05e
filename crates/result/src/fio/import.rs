//! Reads fio's JSON and JSON+ into figures that can be stored and compared.
//!
//! The import does not depend on fio's version: missing members are left out. It also accepts
//! messages before and after the JSON, several documents in a row (`--status-interval`; the last
//! one counts), `nan` and `inf`, and the `client_stats` of a server's clients.

use crate::compare::{
    Bounds, Figure, IoPattern, Measure, PartRole, ResultPart, Subject, bounds_of_samples,
    has_enough_samples, number_equal_names,
};
use crate::littles_law::SlotTime;
use crate::stats::Moments;
use serde_json::{Map, Value};
use std::cell::LazyCell;

/// Contents of a fio document.
#[derive(Debug, Clone, PartialEq)]
pub struct FioDocument {
    /// Name and version of the program, e.g. `fio-3.33`.
    pub version: String,
    /// Approximate start of the first job, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Duration of the run: in whole seconds, unless iosonde wrote the document.
    pub elapsed_ns: u64,
    /// File or directory of the jobs, if there is only one.
    pub target: Option<String>,
    /// Host name of the machine, if the document is of a server's client.
    pub machine: Option<String>,
    /// Parts: one per job name within a group. A part that moved no data has no figures.
    pub parts: Vec<ResultPart>,
    /// Errors of jobs, one sentence each.
    pub errors: Vec<String>,
    /// The JSON document.
    pub json: Value,
}

/// Largest document in bytes. A parsed tree takes sixteen times as much. fio's have a few MB.
const MAX_DOCUMENT_BYTES: usize = 128 << 20;

/// Reason why a text is not a fio result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text contains no JSON object.
    #[error("the file contains no JSON")]
    NoJson,
    /// The text starts like JSON, but is not valid.
    #[error("the file contains invalid JSON: {0}")]
    Broken(#[source] serde_json::Error),
    /// The document is larger than any that fio writes.
    #[error(
        "the file contains a document of more than {} MiB, the maximum size of fio's output",
        MAX_DOCUMENT_BYTES >> 20
    )]
    TooLarge,
    /// The text is JSON, but not from fio.
    #[error("the JSON is not from fio: it has no list of jobs")]
    NotFio,
}

/// Reads the last document of a file.
pub fn import(text: &str) -> Result<FioDocument, ImportError> {
    let json = last_document(text)?;
    let jobs = imported_jobs(&json).ok_or(ImportError::NotFio)?;
    let global = json.get("global options");
    let jobs: Vec<ImportedJob<'_>> = jobs
        .into_iter()
        .filter_map(|job| ImportedJob::from_json(job, global))
        .collect();
    if jobs.is_empty() {
        return Err(ImportError::NotFio);
    }
    let elapsed_s = jobs.iter().map(|job| unsigned(job.json, "elapsed")).max();
    let elapsed_ns = elapsed_s.unwrap_or(0).saturating_mul(1_000_000_000);
    let estimated = || (started_at_ms(&json, &jobs, elapsed_ns), elapsed_ns);
    let (started_at_ms, elapsed_ns) = own_time(&json).unwrap_or_else(estimated);
    Ok(FioDocument {
        version: json["fio version"].as_str().unwrap_or("fio").to_owned(),
        started_at_ms,
        elapsed_ns,
        target: common_value(jobs.iter().filter_map(ImportedJob::target)),
        machine: common_value(jobs.iter().filter_map(|job| text_of(job.json, "hostname"))),
        parts: parts(&jobs),
        errors: errors(&jobs),
        json: json.clone(),
    })
}

fn last_document(text: &str) -> Result<Value, ImportError> {
    let is_start = |line: &str| line.starts_with('{');
    let mut start = 0;
    let mut last = None;
    let mut problem = None;
    let without_words = LazyCell::new(|| without_words(text));
    while start < text.len() {
        let rest = &text[start..];
        let line = rest.split_inclusive('\n').next().unwrap_or(rest);
        if !is_start(line) {
            start += line.len();
            continue;
        }
        let rest = first_bytes(rest);
        // C prints values that are not finite as words. Zeros of the same length replace them.
        let found = parsed(rest)
            .or_else(|error| parsed(first_bytes(&without_words[start..])).map_err(|_| error));
        match found {
            Ok((value, length)) => {
                start += length;
                if value.is_object() {
                    last = Some(value);
                }
            }
            Err(error) if error.is_eof() && start + rest.len() < text.len() => {
                return Err(ImportError::TooLarge);
            }
            Err(error) => {
                // The document may be truncated. Earlier documents are valid.
                problem = Some(error);
                start += line.len();
            }
        }
    }
    match (last, problem) {
        (Some(value), _) => Ok(value),
        (None, Some(error)) => Err(ImportError::Broken(error)),
        (None, None) => Err(ImportError::NoJson),
    }
}

/// Returns the part of a text that one document may occupy.
fn first_bytes(text: &str) -> &str {
    // A character has at most four bytes.
    let mut ends = (0..4).map(|back| MAX_DOCUMENT_BYTES - back);
    let first = ends.find_map(|end| text.get(..end));
    first.unwrap_or(text)
}

/// Parses the document at the start of a text, and returns it with its length.
fn parsed(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = documents.next().unwrap_or(Ok(Value::Null))?;
    Ok((value, documents.byte_offset()))
}

fn without_words(text: &str) -> String {
    let mut text = text.to_owned();
    for word in ["-nan", "nan", "-inf", "inf"] {
        for (before, after) in [(": ", ","), (": ", "\n"), (":", ",")] {
            let zero = format!("{before}{:>width$}{after}", 0, width = word.len());
            text = text.replace(&format!("{before}{word}{after}"), &zero);
        }
    }
    text
}

/// Returns the jobs of a run, or those of all clients of a server without their sum.
fn imported_jobs(json: &Value) -> Option<Vec<&Map<String, Value>>> {
    let list = json.get("jobs").or_else(|| json.get("client_stats"))?;
    let jobs = list.as_array()?.iter().filter_map(Value::as_object);
    Some(
        jobs.filter(|job| job.get("jobname").and_then(Value::as_str) != Some("All clients"))
            .collect(),
    )
}

struct ImportedJob<'a> {
    json: &'a Map<String, Value>,
    global: Option<&'a Value>,
    name: &'a str,
    group: u64,
}

impl<'a> ImportedJob<'a> {
    fn from_json(
        json: &'a Map<String, Value>,
        global: Option<&'a Value>,
    ) -> Option<ImportedJob<'a>> {
        Some(ImportedJob {
            name: json.get("jobname")?.as_str()?,
            group: unsigned(json, "groupid"),
            json,
            global,
        })
    }

    /// Returns an option of the job, or of all jobs.
    fn option(&self, names: &[&str]) -> Option<&'a str> {
        let places = [self.json.get("job options"), self.global];
        places.into_iter().flatten().find_map(|options| {
            let value = |name: &&str| options.get(*name).and_then(Value::as_str);
            names.iter().find_map(value)
        })
    }

    fn number(&self, names: &[&str]) -> u32 {
        let value = self.option(names).and_then(|text| text.trim().parse().ok());
        value.unwrap_or(1)
    }

    fn target(&self) -> Option<&'a str> {
        self.option(&["filename", "directory"])
    }

    fn pattern(&self) -> IoPattern {
        let bs = self.option(&["bs", "blocksize", "bsrange", "bssplit"]);
        IoPattern {
            rw: self
                .option(&["rw", "readwrite"])
                .unwrap_or("read")
                .to_owned(),
            bs: in_bytes(bs.unwrap_or("4096")),
            iodepth: self.number(&["iodepth"]),
            numjobs: self.number(&["numjobs"]).max(1),
        }
    }

    /// Returns a direction or sync, if it has I/Os.
    fn direction(&self, subject: Subject) -> Option<&'a Map<String, Value>> {
        let object = self.json.get(subject.name())?.as_object()?;
        (unsigned(object, "total_ios") > 0).then_some(object)
    }
}

/// Converts a size to bytes, as in iosonde's patterns. Other texts stay unchanged.
fn in_bytes(bs: &str) -> String {
    use iosonde_job::value::{Bytes, bytes};
    match bytes(bs, Bytes::Binary) {
        Ok(bytes) => bytes.to_string(),
        Err(_) => bs.to_owned(),
    }
}

/// Start in milliseconds and duration in nanoseconds, if iosonde wrote the document.
fn own_time(json: &Value) -> Option<(u64, u64)> {
    let own = json.get("iosonde")?;
    let number = |key| own.get(key).and_then(Value::as_u64);
    number("started_at_ms").zip(number("elapsed_ns"))
}

fn started_at_ms(json: &Value, jobs: &[ImportedJob<'_>], elapsed_ns: u64) -> u64 {
    let starts = jobs.iter().map(|job| unsigned(job.json, "job_start"));
    if let Some(start) = starts.filter(|start| *start > 0).min() {
        return start;
    }
    let root = json.as_object();
    let of = |key| root.map_or(0, |root| unsigned(root, key));
    let printed = match of("timestamp_ms") {
        0 => of("timestamp").saturating_mul(1000),
        ms => ms,
    };
    printed.saturating_sub(elapsed_ns / 1_000_000)
}

fn parts(jobs: &[ImportedJob<'_>]) -> Vec<ResultPart> {
    let mut members: Vec<(u64, &str, Vec<&ImportedJob<'_>>)> = Vec::new();
    for job in jobs {
        match members
            .iter_mut()
            .find(|(group, name, _)| *group == job.group && *name == job.name)
        {
            Some((_, _, jobs)) => jobs.push(job),
            None => members.push((job.group, job.name, vec![job])),
        }
    }
    let mut parts: Vec<ResultPart> = members
        .iter()
        .map(|(_, _, jobs)| imported_part(jobs))
        .collect();
    number_equal_names(&mut parts);
    parts
}

fn imported_part(jobs: &[&ImportedJob<'_>]) -> ResultPart {
    let mut figures = Vec::new();
    for subject in Subject::ALL {
        let found: Vec<_> = jobs
            .iter()
            .filter_map(|job| job.direction(subject))
            .collect();
        if found.is_empty() {
            continue;
        }
        if subject != Subject::Sync {
            rates(subject, jobs, &found, &mut figures);
        }
        latencies(subject, &found, &mut figures);
    }
    ResultPart {
        name: jobs[0].name.to_owned(),
        pattern: jobs[0].pattern(),
        figures,
        role: PartRole::Alone,
    }
}

/// Adds the rates of clones, which ran in parallel.
fn rates(
    subject: Subject,
    jobs: &[&ImportedJob<'_>],
    found: &[&Map<String, Value>],
    figures: &mut Vec<Figure>,
) {
    let sum = |key: &str| -> f64 { found.iter().map(|each| number(each, key)).sum() };
    // With `group_reporting` fio also adds up the clones' numbers of samples.
    let clones = jobs[0].number(&["numjobs"]).max(1);
    let samples = match found.len() {
        1 => samples(found[0], clones),
        _ => {
            let each: Vec<Moments> = found.iter().map(|each| samples(each, 1)).collect();
            sum_samples(&each)
        }
    };
    let mut push = |measure, value: f64| {
        if value > 0.0 {
            figures.push(Figure {
                subject,
                measure,
                value,
                bounds: bounds_of_samples(value, &samples, &SlotTime::default()),
                settled: None,
            });
        }
    };
    push(Measure::Iops, sum("iops"));
    let bytes = match sum("bw_bytes") {
        // Versions before fio 3.0 only have KiB/s.
        0.0 => sum("bw") * 1024.0,
        bytes => bytes,
    };
    push(Measure::BytesPerS, bytes);
}

/// Returns the IOPS samples of an entry with `clones` members.
fn samples(object: &Map<String, Value>, clones: u32) -> Moments {
    let clones = f64::from(clones);
    let count = (number(object, "iops_samples") / clones).floor().max(0.0);
    // fio adds up means and sums of squares, so its deviation is that of one clone. If the clones
    // are fully correlated, the deviation of the sum is larger by the number of clones.
    let deviation = number(object, "iops_stddev") * clones;
    Moments {
        count: count as u64,
        min: number(object, "iops_min"),
        max: number(object, "iops_max"),
        mean: number(object, "iops_mean"),
        m2: deviation.powi(2) * (count - 1.0).max(0.0),
    }
}

/// Returns the samples of the sum, under the assumption that all members are fully correlated.
fn sum_samples(all: &[Moments]) -> Moments {
    let count = all.iter().map(|each| each.count).min().unwrap_or(0);
    let deviation: f64 = all.iter().map(Moments::stddev).sum();
    Moments {
        count,
        mean: all.iter().map(|each| each.mean).sum(),
        m2: deviation.powi(2) * count.saturating_sub(1) as f64,
        ..Moments::default()
    }
}

fn latencies(subject: Subject, found: &[&Map<String, Value>], figures: &mut Vec<Figure>) {
    let kinds = [
        (
            "lat",
            Measure::LatMean,
            [Measure::LatP50, Measure::LatP99, Measure::LatP999],
        ),
        (
            "clat",
            Measure::ClatMean,
            [Measure::ClatP50, Measure::ClatP99, Measure::ClatP999],
        ),
    ];
    for (kind, mean, percentiles) in kinds {
        let each: Vec<ImportedLatency> = found
            .iter()
            .filter_map(|of| ImportedLatency::from_json(of, kind))
            .collect();
        let count: u64 = each.iter().map(|latency| latency.count).sum();
        let weighted = each.iter().map(|each| each.mean_ns * each.count as f64);
        let mut push = |measure, value: f64, bounds: Option<Bounds>| {
            if value > 0.0 {
                figures.push(Figure {
                    subject,
                    measure,
                    value,
                    bounds,
                    settled: None,
                });
            }
        };
        if count > 0 {
            push(mean, weighted.sum::<f64>() / count as f64, None);
        }
        // Percentiles of several clones cannot be combined.
        let [one] = &each[..] else { continue };
        for (measure, percent) in percentiles.into_iter().zip([50.0, 99.0, 99.9]) {
            if let (Some(value), true) =
                (one.percentile(percent), has_enough_samples(count, percent))
            {
                push(measure, value, None);
            }
        }
    }
}

struct ImportedLatency<'a> {
    count: u64,
    mean_ns: f64,
    percentiles: Option<&'a Map<String, Value>>,
}

impl<'a> ImportedLatency<'a> {
    fn from_json(object: &'a Map<String, Value>, kind: &str) -> Option<ImportedLatency<'a>> {
        // fio 2 reports microseconds.
        let units = [("_ns", 1.0), ("_us", 1e3), ("", 1e3)];
        let (stats, unit) = units.into_iter().find_map(|(suffix, unit)| {
            let stats = object.get(&format!("{kind}{suffix}"))?.as_object()?;
            Some((stats, unit))
        })?;
        let count = match unsigned(stats, "N") {
            0 if !stats.contains_key("N") => unsigned(object, "total_ios"),
            count => count,
        };
        Some(ImportedLatency {
            count,
            mean_ns: number(stats, "mean") * unit,
            // Percentiles have the same unit as the rest only since fio 3.
            percentiles: match unit {
                1.0 => stats.get("percentile").and_then(Value::as_object),
                _ => None,
            },
        })
    }

    fn percentile(&self, percent: f64) -> Option<f64> {
        let is_it = |name: &str| {
            name.parse::<f64>()
                .is_ok_and(|at| (at - percent).abs() < 1e-6)
        };
        let found = self.percentiles?.iter().find(|(name, _)| is_it(name))?;
        found.1.as_f64()
    }
}

fn errors(jobs: &[ImportedJob<'_>]) -> Vec<String> {
    let failed = jobs.iter().filter(|job| unsigned(job.json, "error") > 0);
    let sentence = |job: &ImportedJob<'_>| {
        let errno = unsigned(job.json, "error");
        format!("job {} ended with error {errno}", job.name)
    };
    failed.map(sentence).collect()
}

fn unsigned(object: &Map<String, Value>, key: &str) -> u64 {
    object.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn number(object: &Map<String, Value>, key: &str) -> f64 {
    object.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

fn text_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str()
}

/// Returns the value that all have in common.
fn common_value<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<String> {
    let first = values.next()?;
    values.all(|value| value == first).then(|| first.to_owned())
}

#[cfg(test)]
mod tests;
