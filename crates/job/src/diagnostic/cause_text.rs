//! The words of the causes of diagnostics: one message each, and the action that corrects it.

use super::diagnostic_cause::{
    DiagnosticCause, EngineConflict, JobListProblem, OptionConflict, OptionProblem, SyntaxProblem,
    VerifyConflict,
};
use crate::plan::MAX_FILE_BYTES;

impl DiagnosticCause {
    /// Returns the problem, in one line.
    pub(super) fn message(&self) -> String {
        match self {
            DiagnosticCause::Syntax(problem) => problem.message(),
            DiagnosticCause::Option(problem) => problem.message(),
            DiagnosticCause::Jobs(problem) => problem.message(),
            DiagnosticCause::Conflict(conflict) => conflict.message(),
            DiagnosticCause::Engine(conflict) => conflict.message(),
            DiagnosticCause::Verify(conflict) => conflict.message(),
        }
    }

    /// Returns the action that corrects the problem, if it depends on the cause alone.
    pub(super) fn help(&self) -> Option<String> {
        match self {
            DiagnosticCause::Syntax(problem) => problem.help(),
            DiagnosticCause::Option(problem) => problem.help(),
            DiagnosticCause::Jobs(problem) => problem.help().map(str::to_owned),
            DiagnosticCause::Conflict(_) => None,
            DiagnosticCause::Engine(conflict) => conflict.help().map(str::to_owned),
            DiagnosticCause::Verify(conflict) => conflict.help().map(str::to_owned),
        }
    }
}

impl SyntaxProblem {
    fn message(&self) -> String {
        match self {
            SyntaxProblem::UnclosedSection => "this section has no closing `]`".to_owned(),
            SyntaxProblem::IncludeTooDeep { path, .. } => {
                format!("`{path}` is nested too deeply")
            }
            SyntaxProblem::TooManyIncludes { limit } => {
                format!("the job file has more than {limit} includes")
            }
            SyntaxProblem::IncludesItself { path } => format!("`{path}` includes itself"),
            SyntaxProblem::SectionInInclude => "an included file cannot have sections".to_owned(),
            SyntaxProblem::OptionBeforeSection => {
                "an option precedes the first section of the job file".to_owned()
            }
            SyntaxProblem::UnreadableFile { kind, path, error } => {
                format!("cannot read the {kind} `{path}`: {error}")
            }
            SyntaxProblem::InvalidUtf8 { argument } => {
                format!("the argument `{argument}` is not valid UTF-8")
            }
            SyntaxProblem::MissingArgument { option } => format!("`{option}` needs a value"),
            SyntaxProblem::AmbiguousOption { typed, .. } => format!("`{typed}` is ambiguous"),
        }
    }

    fn help(&self) -> Option<String> {
        let help = match self {
            SyntaxProblem::UnclosedSection => "write the name as `[name]`, alone on its line",
            SyntaxProblem::IncludeTooDeep { limit, .. } => {
                return Some(format!("includes may be nested at most {limit} deep"));
            }
            SyntaxProblem::TooManyIncludes { .. } => {
                "include each file once, or write its options into the job file"
            }
            SyntaxProblem::IncludesItself { .. } => "remove this line",
            SyntaxProblem::SectionInInclude => {
                "an included file may contain only options and further `include` lines"
            }
            SyntaxProblem::OptionBeforeSection => {
                "add `[global]` above the option to set it for all jobs"
            }
            SyntaxProblem::AmbiguousOption { names, .. } => {
                return Some(format!("use one of {}", names.join(", ")));
            }
            SyntaxProblem::UnreadableFile { .. }
            | SyntaxProblem::InvalidUtf8 { .. }
            | SyntaxProblem::MissingArgument { .. } => return None,
        };
        Some(help.to_owned())
    }
}

impl OptionProblem {
    fn message(&self) -> String {
        match self {
            OptionProblem::Unknown { name } => format!("there is no option `{name}`"),
            OptionProblem::MissingName => "the name of the option is missing".to_owned(),
            OptionProblem::Unsupported { option, reason, .. } => {
                format!("the option `{option}` is not supported: {reason}")
            }
            OptionProblem::UnsupportedProgramOption { option, reason, .. } => {
                format!("`--{option}` is not supported: {reason}")
            }
            OptionProblem::UnsupportedValue {
                option,
                value,
                reason,
            } => format!("`{option}`: `{value}` is not supported: {reason}"),
            OptionProblem::WrongValue {
                option, problem, ..
            } => format!("`{option}`: {problem}"),
            OptionProblem::WrongProgramValue {
                option, problem, ..
            } => format!("`--{option}`: {problem}"),
            OptionProblem::MissingValue { option, accepted } => {
                format!("`{option}` needs a value: {accepted}")
            }
            OptionProblem::SwappedSuffix { suffix } => {
                format!("`{suffix}` means steps of 1000 with `kb_base=1024`, as in fio")
            }
            OptionProblem::OfUnusedEngine { option, engines } => {
                let engines = engines.join(", ");
                format!("`{option}` is an option of {engines}, which no job uses")
            }
            OptionProblem::OfOtherEngine {
                option,
                engines,
                engine,
            } => {
                let engines = engines.join(", ");
                format!("`{option}` is an option of {engines}, not of {engine}")
            }
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            OptionProblem::Unsupported { instead, .. }
            | OptionProblem::UnsupportedProgramOption { instead, .. } => {
                (!instead.is_empty()).then(|| format!("alternative: {instead}"))
            }
            OptionProblem::WrongValue { help, .. }
            | OptionProblem::WrongProgramValue { help, .. } => help.clone(),
            OptionProblem::SwappedSuffix { suffix } => {
                let letter = suffix.get(..1).unwrap_or_default();
                Some(format!(
                    "`{letter}` means steps of 1024; with `kb_base=1000`, `{suffix}` does"
                ))
            }
            OptionProblem::Unknown { .. }
            | OptionProblem::MissingName
            | OptionProblem::UnsupportedValue { .. }
            | OptionProblem::MissingValue { .. }
            | OptionProblem::OfUnusedEngine { .. }
            | OptionProblem::OfOtherEngine { .. } => None,
        }
    }
}

impl JobListProblem {
    fn message(&self) -> String {
        match self {
            JobListProblem::NoJob => "no job is defined".to_owned(),
            JobListProblem::UnknownSection { name } => format!("no section is named `{name}`"),
            JobListProblem::TooManyFiles { files, limit } => format!(
                "the jobs have {files} files (nrfiles x numjobs), more than the limit of {limit}"
            ),
            JobListProblem::TooManyClones { clones, limit } => format!(
                "the jobs have {clones} clones, more than the limit of {limit}; raise it with \
                 `--max-jobs`"
            ),
            JobListProblem::WaitsForItself { job } => {
                format!("job `{job}` cannot wait for itself")
            }
            JobListProblem::WaitsForUnknown { job, name } => {
                format!("job `{job}` waits for `{name}`, but no earlier job is named `{name}`")
            }
            JobListProblem::WaitsForSeveral { job, name, count } => {
                format!("job `{job}` waits for `{name}`, but {count} jobs are named `{name}`")
            }
            JobListProblem::NeighbourWithoutOptions => "the neighbour has no options".to_owned(),
            JobListProblem::SeveralNeighbours => "the neighbour is one job".to_owned(),
            JobListProblem::NoNeighbour => "the neighbour has no job".to_owned(),
            JobListProblem::NeighbourOption { option } => {
                format!("a neighbour takes no `{option}`")
            }
        }
    }

    fn help(&self) -> Option<&'static str> {
        match self {
            JobListProblem::NoJob => Some("give a job file, or start a job with `--name=NAME`"),
            JobListProblem::TooManyFiles { .. } => Some("use a smaller nrfiles= or numjobs="),
            JobListProblem::NeighbourWithoutOptions => {
                Some("give options of fio, e.g. 'rw=write bs=64k rate=50m'")
            }
            JobListProblem::NeighbourOption { .. } => Some(
                "leave it out: the neighbour uses the target of the measured jobs and lasts as \
                 long as they do",
            ),
            JobListProblem::UnknownSection { .. }
            | JobListProblem::TooManyClones { .. }
            | JobListProblem::WaitsForItself { .. }
            | JobListProblem::WaitsForUnknown { .. }
            | JobListProblem::WaitsForSeveral { .. }
            | JobListProblem::SeveralNeighbours
            | JobListProblem::NoNeighbour => None,
        }
    }
}

impl OptionConflict {
    fn message(&self) -> String {
        match self {
            OptionConflict::Overridden { option, by } => {
                format!("`{option}` has no effect: `{by}` overrides it")
            }
            OptionConflict::NoEffectWithout { option, missing } => {
                format!("`{option}` has no effect without `{missing}`")
            }
            OptionConflict::Needs { setting, missing } => format!("`{setting}` needs `{missing}`"),
            OptionConflict::Excluded {
                options: [first, second],
            } => format!("`{first}` and `{second}` cannot be combined"),
            OptionConflict::UnalignedDirect => {
                "unaligned blocks may fail with `direct=1`".to_owned()
            }
            OptionConflict::OffsetBeyondFile => {
                "the offset is beyond the end of the file".to_owned()
            }
            OptionConflict::BeyondLongestFile { bytes } => format!(
                "{bytes} bytes exceed the maximum file size of {MAX_FILE_BYTES} bytes (8 EiB)"
            ),
            OptionConflict::SizeBelowBlock { bytes, block_bytes } => format!(
                "the size of {bytes} bytes is smaller than the smallest block of {block_bytes} \
                 bytes"
            ),
            OptionConflict::FileBelowBlock { bytes, block_bytes } => format!(
                "a file of {bytes} bytes is smaller than the smallest block of {block_bytes} bytes"
            ),
            OptionConflict::NoLatencyWindow => {
                "`latency_window` is missing: each depth runs for 1 s".to_owned()
            }
            OptionConflict::MinimumAboveRate {
                low,
                high,
                direction,
            } => format!("`{low}` is above `{high}` (for {direction})"),
            OptionConflict::UnsupportedLogClock => {
                "only clock 0 (CLOCK_REALTIME) can be logged".to_owned()
            }
            OptionConflict::EmptyHistogramLog => {
                "the histogram log is empty without `log_hist_msec`".to_owned()
            }
            OptionConflict::TraceReplayedOnce { option } => {
                format!("`{option}` has no effect: a trace is replayed once, as in fio")
            }
            OptionConflict::ReadonlyWriter { rw } => format!("`--readonly` forbids `rw={rw}`"),
        }
    }
}

impl EngineConflict {
    fn message(&self) -> String {
        match self {
            EngineConflict::UnsupportedWithEngine { option, engine } => {
                format!("`{option}` is not supported with `ioengine={engine}`")
            }
            EngineConflict::UnsupportedOnSim { option } => {
                format!("`{option}` is not supported with the simulated device")
            }
            EngineConflict::OffloadToWaitingEngine { engine } => format!(
                "`io_submit_mode=offload` needs a thread per I/O to keep several I/Os of \
                 `{engine}` in flight, and is not supported"
            ),
            EngineConflict::DepthOfWaitingEngine { engine } => {
                format!("`{engine}` waits for each I/O, so the depth is 1 at any `iodepth`")
            }
            EngineConflict::DepthOfPosixaio => {
                "the C library runs one I/O of `posixaio` at a time per file: the device gets a \
                 depth of 1 per file, and latencies include the wait"
                    .to_owned()
            }
            EngineConflict::TraceWithoutPaths { engine } => {
                format!("`{engine}` cannot replay a trace, because a trace opens files by name")
            }
        }
    }

    fn help(&self) -> Option<&'static str> {
        match self {
            EngineConflict::OffloadToWaitingEngine { .. } => {
                Some("use `ioengine=io_uring` or `ioengine=libaio`, which need no thread per I/O")
            }
            EngineConflict::DepthOfWaitingEngine { .. } | EngineConflict::DepthOfPosixaio => {
                Some("use `ioengine=io_uring` or `ioengine=libaio` for a higher depth")
            }
            EngineConflict::TraceWithoutPaths { .. } => {
                Some("map the image (`rbd map`) and set `replay_redirect` to the device")
            }
            EngineConflict::UnsupportedWithEngine { .. }
            | EngineConflict::UnsupportedOnSim { .. } => None,
        }
    }
}

impl VerifyConflict {
    fn message(&self) -> String {
        match self {
            VerifyConflict::OnlyWithoutMethod => {
                "`verify_only` without `verify` would do no I/O".to_owned()
            }
            VerifyConflict::NeverReached => {
                "no data is verified: with `time_based`, writes use the whole runtime".to_owned()
            }
            VerifyConflict::IntervalReduced { interval_bytes } => format!(
                "`verify_interval` does not divide the block sizes: {interval_bytes} bytes are \
                 used instead"
            ),
            VerifyConflict::SharedWriters => {
                "clones write the same file and may overwrite each other's blocks, which \
                 verification reports as errors"
                    .to_owned()
            }
            VerifyConflict::OfTrace => {
                "`verify` does not work with `read_iolog`: a trace has no data".to_owned()
            }
        }
    }

    fn help(&self) -> Option<&'static str> {
        match self {
            VerifyConflict::OnlyWithoutMethod => {
                Some("add verify= with the method of the job that wrote the data")
            }
            VerifyConflict::NeverReached => {
                Some("add `verify_backlog`, which verifies during the writes")
            }
            VerifyConflict::IntervalReduced { .. }
            | VerifyConflict::SharedWriters
            | VerifyConflict::OfTrace => None,
        }
    }
}
