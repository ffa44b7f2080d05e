//! Differences between two observations, and the table of known differences.

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;

use super::command_line::CommandLine;
use super::observation::{Ending, JobFigures, Observation};

/// Property in which two runs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Field {
    /// Success or failure.
    Exit,
    /// Number, names and errors of jobs.
    Jobs,
    /// I/Os by direction.
    Counts,
    /// Bytes by direction.
    Bytes,
    /// Calls of fsync, fdatasync and sync_file_range, as counted in the result.
    Syncs,
    /// The job's options in the result.
    Options,
    /// Paths and types of the JSON document.
    Keys,
    /// Files after the run, with their sizes.
    Files,
    /// System calls.
    Calls,
    /// Text on standard error after success.
    Stderr,
}

/// One difference.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub(super) field: Field,
    pub(super) detail: String,
}

/// All differences of the subject's run from fio's.
pub(super) fn differences(
    line: &CommandLine,
    fio: &Observation,
    subject: &Observation,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |field, detail: String| found.push(Difference { field, detail });
    if fio.ending != subject.ending {
        add(
            Field::Exit,
            format!(
                "{:?} instead of {:?}; fio: {}; iosonde: {}",
                subject.ending, fio.ending, fio.said, subject.said
            ),
        );
        return found;
    }
    if subject.ending == Ending::Success && !subject.stderr.is_empty() {
        add(Field::Stderr, subject.stderr.clone());
    }
    // A failed job may leave files: fio detects some mistakes only after the layout.
    if fio.ending != Ending::Success {
        return found;
    }
    if fio.files != subject.files {
        add(Field::Files, unlike(&fio.files, &subject.files));
    }
    let is_counted = |(call, _): &(&String, &u64)| !line.draws_syncs() || !call.contains("sync");
    let counted = |seen: &Observation| -> BTreeMap<String, u64> {
        let calls = seen.calls.iter().filter(is_counted);
        calls.map(|(call, count)| (call.clone(), *count)).collect()
    };
    let (reference, calls) = (counted(fio), counted(subject));
    if reference != calls {
        add(Field::Calls, unlike(&reference, &calls));
    }
    let names = |seen: &Observation| -> Vec<_> {
        seen.jobs
            .iter()
            .map(|job| (job.name.clone(), job.error))
            .collect()
    };
    if names(fio) != names(subject) {
        add(
            Field::Jobs,
            format!("{:?} instead of {:?}", names(subject), names(fio)),
        );
        return found;
    }
    for (reference, job) in fio.jobs.iter().zip(&subject.jobs) {
        compare_jobs(line, reference, job, &mut add);
    }
    // The directions with samples in a mix are random.
    if fio.keys != subject.keys && !line.is_mixed() && !line.is_timed() {
        let missing = fio
            .keys
            .difference(&subject.keys)
            .map(|key| format!("- {key}"));
        let added = subject
            .keys
            .difference(&fio.keys)
            .map(|key| format!("+ {key}"));
        add(
            Field::Keys,
            missing.chain(added).collect::<Vec<_>>().join(", "),
        );
    }
    found
}

fn compare_jobs(
    line: &CommandLine,
    fio: &JobFigures,
    subject: &JobFigures,
    add: &mut impl FnMut(Field, String),
) {
    let ios = |job: &JobFigures| job.moved.map(|moved| moved.ios);
    let bytes = |job: &JobFigures| job.moved.map(|moved| moved.bytes);
    // The programs have different random generators for directions and sizes: only sums agree, and
    // with several sizes not even those.
    let is_mixed = line.is_mixed();
    let draws_sizes = line.draws_sizes();
    let total = |job: &JobFigures| bytes(job).iter().sum::<u64>();
    // A verified mix reads its written blocks again.
    let is_drawn = line.is_timed() || is_mixed && (draws_sizes || line.verifies());
    let is_same_bytes = match is_mixed {
        _ if is_drawn => true,
        true => total(fio) == total(subject),
        false => bytes(fio) == bytes(subject),
    };
    let is_counted = !draws_sizes && !is_mixed && !line.is_timed();
    if !is_same_bytes {
        add(
            Field::Bytes,
            format!("{:?} instead of {:?}", bytes(subject), bytes(fio)),
        );
    } else if is_counted && ios(fio) != ios(subject) {
        add(
            Field::Counts,
            format!("{:?} instead of {:?}", ios(subject), ios(fio)),
        );
    } else if is_counted && fio.syncs != subject.syncs {
        add(
            Field::Syncs,
            format!("{} instead of {}", subject.syncs, fio.syncs),
        );
    }
    if fio.options != subject.options {
        add(Field::Options, unlike(&fio.options, &subject.options));
    }
}

/// Entries that differ between two maps: `-` for fio, `+` for the subject.
fn unlike<V: PartialEq + std::fmt::Debug>(
    fio: &BTreeMap<String, V>,
    subject: &BTreeMap<String, V>,
) -> String {
    let only =
        |sign: char, these: &BTreeMap<String, V>, others: &BTreeMap<String, V>| -> Vec<String> {
            let unlike = these
                .iter()
                .filter(|(name, value)| others.get(*name) != Some(value));
            unlike
                .map(|(name, value)| format!("{sign} {name}: {value:?}"))
                .collect()
        };
    let mut all = only('-', fio, subject);
    all.extend(only('+', subject, fio));
    all.join(", ")
}

/// A class of differences that are intended or not yet fixed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    pub(super) id: String,
    /// The reason why the programs differ.
    pub(super) reason: String,
    fields: Vec<Field>,
    /// Pattern that the command line matches.
    #[serde(default)]
    line: String,
    /// Pattern that the command line must not match.
    unless: Option<String>,
    /// Pattern that the detail of the difference matches.
    #[serde(default)]
    detail: String,
}

/// A class with its compiled patterns.
struct CompiledClass {
    class: Class,
    line: Regex,
    unless: Option<Regex>,
    detail: Regex,
}

impl CompiledClass {
    fn new(class: Class) -> CompiledClass {
        let compile = |pattern: &str| Regex::new(pattern).expect("a regular expression");
        CompiledClass {
            line: compile(&class.line),
            unless: class.unless.as_deref().map(compile),
            detail: compile(&class.detail),
            class,
        }
    }

    fn holds(&self, line: &str, difference: &Difference) -> bool {
        let is_excepted = |unless: &Regex| unless.is_match(line);
        self.class.fields.contains(&difference.field)
            && self.line.is_match(line)
            && !self.unless.as_ref().is_some_and(is_excepted)
            && self.detail.is_match(&difference.detail)
    }
}

#[derive(Deserialize)]
struct Table {
    class: Vec<Class>,
}

/// The committed table of classes.
pub(super) struct KnownClasses {
    classes: Vec<CompiledClass>,
}

impl KnownClasses {
    pub(super) fn load() -> KnownClasses {
        let table: Table =
            toml::from_str(include_str!("disagreements.toml")).expect("the table of disagreements");
        KnownClasses {
            classes: table.class.into_iter().map(CompiledClass::new).collect(),
        }
    }

    /// The first class that matches a difference.
    pub(super) fn find(&self, line: &str, difference: &Difference) -> Option<&Class> {
        let known = self
            .classes
            .iter()
            .find(|known| known.holds(line, difference));
        known.map(|known| &known.class)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter().map(|known| &known.class)
    }
}
