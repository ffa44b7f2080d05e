//! A run of one command line by one program, reduced to properties that both programs must share.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;

use iosonde_e2e::program::Invocation;
use iosonde_e2e::scratch::incompressible;
use iosonde_e2e::tree::shape;
use iosonde_e2e::{Program, Scratch, system_calls};
use serde_json::Value;

use super::command_line::CommandLine;

/// Time limit of a run. Both programs end within two seconds on a quiet machine.
const TIMEOUT_S: u32 = 20;
/// Maximum file size: a mutated size can be a terabyte.
const FILE_BYTES_MAX: u32 = 64 << 20;
/// Size of the file `target`.
const TARGET_BYTES: usize = 256 << 10;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With status 0.
    Success,
    /// With another status.
    Failure,
    /// Killed by its own signal, such as SIGABRT.
    Signal(i32),
    /// Killed after [`TIMEOUT_S`].
    Timeout,
}

/// I/Os and bytes of a job in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TransferCounts {
    pub(super) ios: u64,
    pub(super) bytes: u64,
}

/// Figures of a job that do not depend on time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobFigures {
    pub(super) name: String,
    pub(super) error: i64,
    /// Reads, writes, trims.
    pub(super) moved: [TransferCounts; 3],
    pub(super) syncs: u64,
    pub(super) options: BTreeMap<String, String>,
}

/// Observed properties of a run.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    pub(super) ending: Ending,
    pub(super) jobs: Vec<JobFigures>,
    /// Paths of the JSON document with types, except those that name options or disks.
    pub(super) keys: BTreeSet<String>,
    /// Files below the working directory, with sizes.
    pub(super) files: BTreeMap<String, u64>,
    /// Calls by name and file, if traced.
    pub(super) calls: BTreeMap<String, u64>,
    pub(super) stderr: String,
    /// The first lines of output, for reports.
    pub(super) said: String,
}

/// System calls on files of the working directory whose number the job determines.
const TRACED: &str = "trace=fsync,fdatasync,sync_file_range,fadvise64,fallocate,ftruncate,unlink";

/// Runs a command line in a new directory.
pub(super) fn observe(program: Program, line: &CommandLine, is_traced: bool) -> Observation {
    let scratch = Scratch::shared();
    scratch.write("target", incompressible(TARGET_BYTES, 1));
    fs::create_dir(scratch.work().join("sub")).expect("a directory");
    let document = scratch.out().join("result.json");
    let trace = scratch.out().join("calls");
    // Jobs of fio are sessions of their own, which survive a killed fio but not the PID namespace.
    let alone = ["unshare", "--pid", "--fork", "--kill-child"];
    let bounded = ["timeout", "--kill-after=1", &TIMEOUT_S.to_string()];
    let mut words: Vec<OsString> = alone.iter().chain(&bounded).map(OsString::from).collect();
    // With SIGXFSZ ignored, a write beyond the limit fails with EFBIG.
    let limit = format!(
        "trap '' XFSZ; ulimit -f {}; exec \"$@\"",
        FILE_BYTES_MAX / 1024
    );
    words.extend(["bash", "-c", &limit, "limited"].map(OsString::from));
    if is_traced {
        words.extend(["strace", "-f", "-qq", "-y", "-e", TRACED, "-o"].map(OsString::from));
        words.push(trace.clone().into());
    }
    words.extend(program.command());
    words.push("--output-format=json".into());
    words.push(format!("--output={}", document.display()).into());
    words.extend(line.arguments().into_iter().map(OsString::from));
    if let Some(text) = line.job_file() {
        let file = scratch.out().join("job.fio");
        fs::write(&file, text).expect("a job file");
        words.push(file.into());
    }
    let run = Invocation::new(&scratch, words).run();
    // fio reports a crashed job process only as text.
    let crash = run.stderr.split_once("got signal=");
    let ending = match (run.status.code(), run.status.signal()) {
        (Some(_), _) if crash.is_some() => Ending::Signal(0),
        (Some(0), _) => Ending::Success,
        (Some(124 | 137), _) => Ending::Timeout,
        (Some(code), _) if code > 128 => Ending::Signal(code - 128),
        (_, Some(signal)) => Ending::Signal(signal),
        _ => Ending::Failure,
    };
    let text = fs::read_to_string(&document).unwrap_or_default();
    let result = parse_document(&text);
    Observation {
        ending,
        jobs: result.as_ref().map(job_figures).unwrap_or_default(),
        keys: result.as_ref().map(keys).unwrap_or_default(),
        files: sizes(&scratch),
        calls: match is_traced {
            true => count_calls(&system_calls(&trace)),
            false => BTreeMap::new(),
        },
        said: first_lines(&run.stderr, &run.stdout),
        stderr: run.stderr,
    }
}

/// The first error of each stream, or its first line. fio prints errors on either stream.
fn first_lines(stderr: &str, stdout: &str) -> String {
    let first = |text: &str| {
        let error = text.lines().find(|line| line.starts_with("error: "));
        error.or(text.lines().next()).unwrap_or_default().to_owned()
    };
    [stderr, stdout].map(first).join(" ").trim().to_owned()
}

/// fio prints notes before the JSON, also into a file.
fn parse_document(text: &str) -> Option<Value> {
    let start = text.find('{')?;
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    documents.next()?.ok()
}

fn job_figures(document: &Value) -> Vec<JobFigures> {
    let jobs = document["jobs"].as_array().cloned().unwrap_or_default();
    jobs.iter().map(figures_of_job).collect()
}

fn figures_of_job(job: &Value) -> JobFigures {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let options = job["job options"].as_object().cloned().unwrap_or_default();
    JobFigures {
        name: job["jobname"].as_str().unwrap_or_default().to_owned(),
        error: job["error"].as_i64().unwrap_or_default(),
        moved: ["read", "write", "trim"].map(|direction| TransferCounts {
            ios: count(&job[direction]["total_ios"]),
            bytes: count(&job[direction]["io_bytes"]),
        }),
        syncs: count(&job["sync"]["total_ios"]),
        options: options
            .into_iter()
            .map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    }
}

/// Paths of the document, except options (compared as values), disks (which vary over time),
/// percentiles without samples, and iosonde's additions.
fn keys(document: &Value) -> BTreeSet<String> {
    let left_out = ["/jobs[]/job options", "/global options", "/disk_util"];
    let is_kept = |path: &&String| {
        !left_out.iter().any(|start| path.starts_with(start))
            && !path.contains("/percentile/")
            && !path.split('/').any(|part| part == "iosonde")
    };
    shape(document)
        .iter()
        .filter(|(path, _)| is_kept(path))
        .map(|(path, kind)| format!("{path} {kind}"))
        .collect()
}

fn sizes(scratch: &Scratch) -> BTreeMap<String, u64> {
    let length = |name: &str| fs::metadata(scratch.work().join(name)).map_or(0, |file| file.len());
    let names = scratch.files().into_iter();
    // fio writes a state file for verified writes; logs contain times.
    names
        .filter(|name| !name.ends_with(".state"))
        .map(|name| {
            (
                if name.to_lowercase().contains("log") {
                    0
                } else {
                    length(&name)
                },
                name,
            )
        })
        .map(|(bytes, name)| (name, bytes))
        .collect()
}

/// Counts trace lines by call, file and advice, for files in the working directory.
fn count_calls(trace: &[String]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in trace {
        let Some((_, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let (Some((name, _)), Some((_, file))) = (call.split_once('('), call.split_once("/work/"))
        else {
            continue;
        };
        let file: String = file
            .chars()
            .take_while(|letter| !">\"".contains(*letter))
            .collect();
        let advice = call
            .split([' ', ')'])
            .find(|part| part.contains("POSIX_FADV"));
        *counts
            .entry(format!("{name} {file} {}", advice.unwrap_or_default()))
            .or_insert(0) += 1;
    }
    counts
}
