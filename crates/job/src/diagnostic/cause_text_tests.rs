//! The words of all causes of diagnostics.

use super::*;

/// Returns the message of each cause, with its help.
fn words<C: Into<DiagnosticCause>>(causes: impl IntoIterator<Item = C>) -> String {
    let mut lines = Vec::new();
    for cause in causes {
        let error = Diagnostic::error_from(cause);
        lines.push(error.message);
        lines.extend(error.help.iter().map(|help| format!("  help: {help}")));
    }
    lines.join("\n")
}

fn name() -> String {
    "NAME".to_owned()
}

#[test]
fn syntax_problem_has_words() {
    insta::assert_snapshot!(words([
        SyntaxProblem::UnclosedSection,
        SyntaxProblem::IncludeTooDeep { path: name(), limit: 16 },
        SyntaxProblem::TooManyIncludes { limit: 1000 },
        SyntaxProblem::IncludesItself { path: name() },
        SyntaxProblem::SectionInInclude,
        SyntaxProblem::OptionBeforeSection,
        SyntaxProblem::UnreadableFile { kind: "job file", path: name(), error: "ERROR".to_owned() },
        SyntaxProblem::InvalidUtf8 { argument: name() },
        SyntaxProblem::MissingArgument { option: name() },
        SyntaxProblem::AmbiguousOption { typed: name(), names: vec!["a", "b"] },
    ]), @r"
    this section has no closing `]`
      help: write the name as `[name]`, alone on its line
    `NAME` is nested too deeply
      help: includes may be nested at most 16 deep
    the job file has more than 1000 includes
      help: include each file once, or write its options into the job file
    `NAME` includes itself
      help: remove this line
    an included file cannot have sections
      help: an included file may contain only options and further `include` lines
    an option precedes the first section of the job file
      help: add `[global]` above the option to set it for all jobs
    cannot read the job file `NAME`: ERROR
    the argument `NAME` is not valid UTF-8
    `NAME` needs a value
    `NAME` is ambiguous
      help: use one of a, b
    ");
}

#[test]
fn option_problem_has_words() {
    let (option, reason) = ("OPTION", "REASON");
    let (problem, help) = ("PROBLEM".to_owned(), Some("HELP".to_owned()));
    insta::assert_snapshot!(words([
        OptionProblem::Unknown { name: name() },
        OptionProblem::MissingName,
        OptionProblem::Unsupported { option, reason, instead: "" },
        OptionProblem::UnsupportedProgramOption { option, reason, instead: "OTHER" },
        OptionProblem::UnsupportedValue { option, value: "VALUE".to_owned(), reason },
        OptionProblem::WrongValue { option, problem: problem.clone(), help: help.clone() },
        OptionProblem::WrongProgramValue { option, problem, help },
        OptionProblem::MissingValue { option, accepted: "a number".to_owned() },
        OptionProblem::SwappedSuffix { suffix: "kib" },
        OptionProblem::OfUnusedEngine { option, engines: &["rbd", "rados"] },
        OptionProblem::OfOtherEngine { option, engines: &["rbd", "rados"], engine: "libaio" },
    ]), @r"
    there is no option `NAME`
    the name of the option is missing
    the option `OPTION` is not supported: REASON
    `--OPTION` is not supported: REASON
      help: alternative: OTHER
    `OPTION`: `VALUE` is not supported: REASON
    `OPTION`: PROBLEM
      help: HELP
    `--OPTION`: PROBLEM
      help: HELP
    `OPTION` needs a value: a number
    `kib` means steps of 1000 with `kb_base=1024`, as in fio
      help: `k` means steps of 1024; with `kb_base=1000`, `kib` does
    `OPTION` is an option of rbd, rados, which no job uses
    `OPTION` is an option of rbd, rados, not of libaio
    ");
}

#[test]
fn job_list_problem_has_words() {
    let job = || "JOB".to_owned();
    insta::assert_snapshot!(words([
        JobListProblem::NoJob,
        JobListProblem::UnknownSection { name: name() },
        JobListProblem::TooManyFiles { files: 9, limit: 8 },
        JobListProblem::TooManyClones { clones: 9, limit: 8 },
        JobListProblem::WaitsForItself { job: job() },
        JobListProblem::WaitsForUnknown { job: job(), name: name() },
        JobListProblem::WaitsForSeveral { job: job(), name: name(), count: 2 },
        JobListProblem::NeighbourWithoutOptions,
        JobListProblem::SeveralNeighbours,
        JobListProblem::NoNeighbour,
        JobListProblem::NeighbourOption { option: "OPTION".to_owned() },
    ]), @r"
    no job is defined
      help: give a job file, or start a job with `--name=NAME`
    no section is named `NAME`
    the jobs have 9 files (nrfiles x numjobs), more than the limit of 8
      help: use a smaller nrfiles= or numjobs=
    the jobs have 9 clones, more than the limit of 8; raise it with `--max-jobs`
    job `JOB` cannot wait for itself
    job `JOB` waits for `NAME`, but no earlier job is named `NAME`
    job `JOB` waits for `NAME`, but 2 jobs are named `NAME`
    the neighbour has no options
      help: give options of fio, e.g. 'rw=write bs=64k rate=50m'
    the neighbour is one job
    the neighbour has no job
    a neighbour takes no `OPTION`
      help: leave it out: the neighbour uses the target of the measured jobs and lasts as long as they do
    ");
}

#[test]
fn option_conflict_has_words() {
    let (option, missing) = ("OPTION", "OTHER");
    let (bytes, block_bytes) = (1024, 4096);
    let setting = "OPTION=VALUE".to_owned();
    insta::assert_snapshot!(words([
        OptionConflict::Overridden { option, by: "OTHER" },
        OptionConflict::NoEffectWithout { option, missing },
        OptionConflict::Needs { setting, missing },
        OptionConflict::Excluded { options: ["OPTION", "OTHER"] },
        OptionConflict::UnalignedDirect,
        OptionConflict::OffsetBeyondFile,
        OptionConflict::BeyondLongestFile { bytes: 1 << 63 },
        OptionConflict::SizeBelowBlock { bytes, block_bytes },
        OptionConflict::FileBelowBlock { bytes, block_bytes },
        OptionConflict::NoLatencyWindow,
        OptionConflict::MinimumAboveRate { low: "rate_min", high: "rate", direction: "read" },
        OptionConflict::UnsupportedLogClock,
        OptionConflict::EmptyHistogramLog,
        OptionConflict::TraceReplayedOnce { option },
        OptionConflict::ReadonlyWriter { rw: "write" },
    ]), @r"
    `OPTION` has no effect: `OTHER` overrides it
    `OPTION` has no effect without `OTHER`
    `OPTION=VALUE` needs `OTHER`
    `OPTION` and `OTHER` cannot be combined
    unaligned blocks may fail with `direct=1`
    the offset is beyond the end of the file
    9223372036854775808 bytes exceed the maximum file size of 9223372036854775807 bytes (8 EiB)
    the size of 1024 bytes is smaller than the smallest block of 4096 bytes
    a file of 1024 bytes is smaller than the smallest block of 4096 bytes
    `latency_window` is missing: each depth runs for 1 s
    `rate_min` is above `rate` (for read)
    only clock 0 (CLOCK_REALTIME) can be logged
    the histogram log is empty without `log_hist_msec`
    `OPTION` has no effect: a trace is replayed once, as in fio
    `--readonly` forbids `rw=write`
    ");
}

#[test]
fn engine_conflict_has_words() {
    let (option, engine) = ("OPTION", "ENGINE");
    insta::assert_snapshot!(words([
        EngineConflict::UnsupportedWithEngine { option, engine },
        EngineConflict::UnsupportedOnSim { option },
        EngineConflict::OffloadToWaitingEngine { engine },
        EngineConflict::DepthOfWaitingEngine { engine },
        EngineConflict::DepthOfPosixaio,
        EngineConflict::TraceWithoutPaths { engine },
    ]), @r"
    `OPTION` is not supported with `ioengine=ENGINE`
    `OPTION` is not supported with the simulated device
    `io_submit_mode=offload` needs a thread per I/O to keep several I/Os of `ENGINE` in flight, and is not supported
      help: use `ioengine=io_uring` or `ioengine=libaio`, which need no thread per I/O
    `ENGINE` waits for each I/O, so the depth is 1 at any `iodepth`
      help: use `ioengine=io_uring` or `ioengine=libaio` for a higher depth
    the C library runs one I/O of `posixaio` at a time per file: the device gets a depth of 1 per file, and latencies include the wait
      help: use `ioengine=io_uring` or `ioengine=libaio` for a higher depth
    `ENGINE` cannot replay a trace, because a trace opens files by name
      help: map the image (`rbd map`) and set `replay_redirect` to the device
    ");
}

#[test]
fn verify_conflict_has_words() {
    insta::assert_snapshot!(words([
        VerifyConflict::OnlyWithoutMethod,
        VerifyConflict::NeverReached,
        VerifyConflict::IntervalReduced { interval_bytes: 2048 },
        VerifyConflict::SharedWriters,
        VerifyConflict::OfTrace,
    ]), @r"
    `verify_only` without `verify` would do no I/O
      help: add verify= with the method of the job that wrote the data
    no data is verified: with `time_based`, writes use the whole runtime
      help: add `verify_backlog`, which verifies during the writes
    `verify_interval` does not divide the block sizes: 2048 bytes are used instead
    clones write the same file and may overwrite each other's blocks, which verification reports as errors
    `verify` does not work with `read_iolog`: a trace has no data
    ");
}
