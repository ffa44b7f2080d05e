//! [`Neighbour`]: load of other programs on the same target, as `--beside` describes it.

use crate::diagnostic::{Diagnostic, Diagnostics, JobListProblem};
use crate::env::Env;
use crate::options;
use crate::outside_access::outside_accesses;
use crate::plan::{BytesOrPercent, Job, Plan};
use crate::resolve::{self, CommandLineSettings};
use crate::source::Span;
use crate::syntax::ini;
use serde::{Deserialize, Serialize};

/// Name of the neighbour's job.
const NAME: &str = "neighbour";
/// The text before the options in the job file that is parsed.
const HEADER: &str = "[neighbour]\n";
/// Size of the neighbour's file or region, unless the options or the target set another.
const DEFAULT_BYTES: u64 = 1 << 30;
/// Share of the target that the neighbour uses at most, unless its options set a size.
const TARGET_SHARE: u64 = 10;
/// Unit of the start and size of the neighbour's region.
const REGION_UNIT_BYTES: u64 = 1 << 20;
/// Run time of the neighbour, which the end of the other jobs cuts short: a year.
const RUNTIME_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// Options that the target and the other jobs determine, and those with which the neighbour would
/// begin late, end early, or end the other jobs.
const REFUSED: [&str; 19] = [
    "create_only",
    "directory",
    "exit_what",
    "exitall",
    "filename",
    "filename_format",
    "loops",
    "name",
    "new_group",
    "number_ios",
    "opendir",
    "ramp_time",
    "read_iolog",
    "runtime",
    "startdelay",
    "steadystate",
    "stonewall",
    "time_based",
    "wait_for",
];

/// Load of other programs on the same target: one fio job beside the measured ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The options as given, e.g. `rw=write bs=64k rate=50m`.
    pub options: String,
    /// The job, which has no files yet. It has no size unless the options set one.
    pub job: Job,
}

impl Neighbour {
    /// Parses options of fio that are separated by spaces. `source` names the text in errors.
    ///
    /// # Errors
    /// All errors in the options, each with its position in `text`.
    pub fn parse(source: &str, text: &str, env: &dyn Env) -> Result<Neighbour, Diagnostics> {
        let given = words(text);
        let names: Vec<&str> = given.iter().map(|(_, word)| option_name(word)).collect();
        let is_sized = (names.iter()).any(|name| ["size", "filesize"].contains(name));
        let mut found = Diagnostics::default();
        let lines = text.replace(|letter: char| letter.is_ascii_whitespace(), "\n");
        let size = if is_sized { "" } else { "\nsize=1g" };
        let sections = ini::parse(source, format!("{HEADER}{lines}{size}\n"), env, &mut found);
        // The target determines the engine if it is simulated or in a Ceph cluster.
        let settings = CommandLineSettings {
            engine_of_target: true,
            ..CommandLineSettings::default()
        };
        let plan = resolve::resolve(&[sections], &settings, env, &mut found);
        let mut wrong = Diagnostics::default();
        wrong.sources.add(source, text);
        let whole = Span {
            source: 0,
            start: 0,
            end: text.len(),
        };
        for mut one in found.list {
            one.span = Some(one.span.map_or(whole, |span| within(span, whole)));
            wrong.push(one);
        }
        for ((start, word), name) in given.iter().zip(&names) {
            if REFUSED.contains(name) {
                wrong.push(refused(name).at(Span {
                    source: 0,
                    start: *start,
                    end: start + word.len(),
                }));
            }
        }
        if given.is_empty() {
            let nothing = JobListProblem::NeighbourWithoutOptions;
            wrong.push(Diagnostic::error_from(nothing).at(whole));
        }
        for access in plan.jobs.iter().flat_map(outside_accesses) {
            wrong.push(refused(access.option).at(whole));
        }
        let mut jobs = plan.jobs.into_iter();
        match (jobs.next(), jobs.next()) {
            (Some(mut job), None) if !wrong.has_errors() => {
                if !is_sized {
                    job.files.size = None;
                }
                let words: Vec<&str> = given.iter().map(|(_, word)| *word).collect();
                Ok(Neighbour {
                    options: words.join(" "),
                    job: beside_others(job),
                })
            }
            (_, another) => {
                if another.is_some() {
                    let several = JobListProblem::SeveralNeighbours;
                    wrong.push(Diagnostic::error_from(several).at(whole));
                } else if !wrong.has_errors() {
                    let none = JobListProblem::NoNeighbour;
                    wrong.push(Diagnostic::error_from(none).at(whole));
                }
                Err(wrong)
            }
        }
    }

    /// Returns the job for a target with room for `free_bytes`, without files yet.
    pub fn job_within(&self, free_bytes: u64) -> Job {
        let mut job = self.job.clone();
        set_size(&mut job, free_bytes);
        job
    }

    /// Returns the job on a region at the end of a file or device of `bytes`.
    pub fn job_at_end(&self, bytes: u64) -> Job {
        let mut job = self.job_within(bytes);
        move_to_end(&mut job, bytes);
        job
    }

    /// Adds the job of a neighbour to a plan, in a reporting group of its own.
    pub fn join_plan(job: Job, plan: &mut Plan) {
        debug_assert!(job.schedule.neighbour && plan.neighbour().is_none());
        let last_group = plan.jobs.iter().map(|job| job.groupid).max();
        plan.jobs.push(Job {
            groupid: last_group.map_or(0, |group| group + 1),
            ..job
        });
    }
}

/// Sets the size of a plan's neighbour, if it has none, for a target with room for `free_bytes`.
pub fn fit_neighbour(plan: &mut Plan, free_bytes: u64) {
    let mut jobs = plan.jobs.iter_mut();
    if let Some(job) = jobs.find(|job| job.schedule.neighbour) {
        set_size(job, free_bytes);
    }
}

fn set_size(job: &mut Job, free_bytes: u64) {
    if job.files.size.is_none() && job.files.filesize.is_none() {
        job.files.size = Some(BytesOrPercent::Bytes(default_bytes(free_bytes)));
    }
}

/// Moves a neighbour's region to the end of a file or device of `bytes`.
pub fn move_to_end(job: &mut Job, bytes: u64) {
    let size = match job.files.size {
        Some(BytesOrPercent::Bytes(size)) => size,
        _ => default_bytes(bytes),
    };
    let clones = u64::from(job.numjobs.max(1));
    let start = bytes.saturating_sub(size.saturating_mul(clones));
    let start = start - start % REGION_UNIT_BYTES;
    job.files.offset = BytesOrPercent::Bytes(start);
    job.files.offset_increment = BytesOrPercent::Bytes(size);
    job.files.size = Some(BytesOrPercent::Bytes(size.min(bytes - start)));
}

/// Size of a neighbour that sets none, on a target with room for `free_bytes`.
fn default_bytes(free_bytes: u64) -> u64 {
    let share = free_bytes / TARGET_SHARE;
    let whole = share - share % REGION_UNIT_BYTES;
    whole.clamp(REGION_UNIT_BYTES, DEFAULT_BYTES)
}

/// Returns the words of a text, each with the index of its first byte.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = 0;
    for word in text.split(|letter: char| letter.is_ascii_whitespace()) {
        if !word.is_empty() {
            words.push((start, word));
        }
        start += word.len() + 1;
    }
    words
}

/// Returns the canonical name of the option in `name=value`.
fn option_name(word: &str) -> &str {
    let name = word.split('=').next().unwrap_or_default();
    options::find_option(name).map_or(name, |row| row.name)
}

/// Converts a span of the parsed job file to one of the given text.
fn within(span: Span, whole: Span) -> Span {
    let is_given = span.source == 0 && span.start >= HEADER.len();
    let end = span.end.saturating_sub(HEADER.len());
    match is_given && end <= whole.end {
        true => Span {
            source: 0,
            start: span.start - HEADER.len(),
            end,
        },
        false => whole,
    }
}

fn refused(name: &str) -> Diagnostic {
    let option = name.to_owned();
    Diagnostic::error_from(JobListProblem::NeighbourOption { option })
}

/// Sets what distinguishes a neighbour from other jobs.
fn beside_others(mut job: Job) -> Job {
    NAME.clone_into(&mut job.name);
    job.schedule.neighbour = true;
    job.schedule.time_based = true;
    job.schedule.runtime_ns = RUNTIME_NS;
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FakeEnv;
    use crate::plan::Direction;

    fn parse(text: &str) -> Result<Neighbour, Diagnostics> {
        Neighbour::parse("--beside", text, &FakeEnv::new())
    }

    #[test]
    fn options_become_one_endless_job() {
        let neighbour = parse(" rw=write  bs=64k rate=50m").unwrap();
        assert_eq!(neighbour.options, "rw=write bs=64k rate=50m");
        let schedule = &neighbour.job.schedule;
        assert!(schedule.neighbour && schedule.time_based);
        assert_eq!(schedule.rate_bytes.write, Some(50 << 20));
        assert!(neighbour.job.workload.rw.has(Direction::Write));
        assert!(neighbour.job.files.filenames.is_empty());
    }

    #[test]
    fn wrong_option_has_its_position_in_the_text() {
        for (text, at) in [
            ("rw=write bs=64q", "64q"),
            ("rw=write  bz=64k", "bz"),
            ("rw=write runtime=10", "runtime=10"),
            ("rw=write filename=/dev/sda", "filename=/dev/sda"),
            ("rw=write number_ios=10", "number_ios=10"),
            ("rw=write exitall=1", "exitall=1"),
        ] {
            let wrong = parse(text).unwrap_err();
            let mut spans = wrong.list.iter().filter_map(|one| one.span);
            let is_there = |span: Span| {
                let shown = wrong.sources.slice(span);
                !shown.is_empty() && at.contains(shown)
            };
            assert!(spans.any(is_there), "{text}: {}", wrong.render(false));
        }
        assert!(parse("").unwrap_err().has_errors());
        for outside in ["exec_prerun=true", "write_bw_log=x", "mem=mmap:/x"] {
            let wrong = parse(&format!("rw=read {outside}")).unwrap_err();
            let option = outside.split('=').next().unwrap().to_owned();
            let refused = Some(Box::new(JobListProblem::NeighbourOption { option }.into()));
            let is_refused = wrong.list.iter().any(|one| one.cause == refused);
            assert!(is_refused, "{wrong}");
        }
        assert!(parse("rw=read [other]").is_err());
    }

    #[test]
    fn region_is_at_the_end_and_its_size_fits() {
        let plain = parse("rw=read").unwrap();
        let job = plain.job_at_end(100 << 20);
        assert_eq!(job.files.offset, BytesOrPercent::Bytes(90 << 20));
        assert_eq!(job.files.size, Some(BytesOrPercent::Bytes(10 << 20)));
        let size = |free| plain.job_within(free).files.size;
        assert_eq!(size(1 << 40), Some(BytesOrPercent::Bytes(1 << 30)));
        let given = parse("rw=read size=4m").unwrap().job_within(1 << 40);
        assert_eq!(given.files.size, Some(BytesOrPercent::Bytes(4 << 20)));
    }

    #[test]
    fn runtime_of_a_plan_is_that_of_the_measured_jobs() {
        let mut measured = Job::new("measured");
        measured.schedule.runtime_ns = 7;
        let mut plan = Plan {
            jobs: vec![measured],
            global_options: Vec::new(),
        };
        Neighbour::join_plan(parse("rw=read").unwrap().job, &mut plan);
        assert_eq!(plan.longest_runtime_ns(), Some(7));
        assert_eq!(plan.neighbour().map(|job| job.groupid), Some(1));
    }
}
