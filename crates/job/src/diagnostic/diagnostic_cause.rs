//! Causes of the errors and warnings of job files and command lines, as data.

/// The cause of a diagnostic. Its words are in `cause_text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DiagnosticCause {
    /// The text cannot be split into sections and options.
    Syntax(SyntaxProblem),
    /// One option is wrong by itself.
    Option(OptionProblem),
    /// The jobs are wrong together.
    Jobs(JobListProblem),
    /// Options of one job do not fit together.
    Conflict(OptionConflict),
    /// Options of one job do not fit its engine.
    Engine(EngineConflict),
    /// Options of one job do not fit its verification.
    Verify(VerifyConflict),
}

/// An error in the structure of a job file or a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyntaxProblem {
    /// A section's name has no closing bracket.
    UnclosedSection,
    /// An include is nested too deeply.
    IncludeTooDeep {
        /// The included file.
        path: String,
        /// Greatest depth.
        limit: usize,
    },
    /// The job file has too many includes.
    TooManyIncludes {
        /// Greatest number.
        limit: usize,
    },
    /// A file includes itself, directly or through others.
    IncludesItself {
        /// The included file.
        path: String,
    },
    /// An included file has a section.
    SectionInInclude,
    /// An option stands above all sections.
    OptionBeforeSection,
    /// A file cannot be read.
    UnreadableFile {
        /// Kind of the file, e.g. `job file`.
        kind: &'static str,
        /// The file.
        path: String,
        /// The error of the system.
        error: String,
    },
    /// An argument is not UTF-8.
    InvalidUtf8 {
        /// The argument, with replacement characters.
        argument: String,
    },
    /// The command line ends where an option needs a value.
    MissingArgument {
        /// The option as typed.
        option: String,
    },
    /// A prefix matches several options.
    AmbiguousOption {
        /// The option as typed.
        typed: String,
        /// The matching options.
        names: Vec<&'static str>,
    },
}

/// An error or a warning about one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OptionProblem {
    /// The option does not exist.
    Unknown {
        /// The option as typed.
        name: String,
    },
    /// The name before the equals sign is missing.
    MissingName,
    /// iosonde does not have this option of a job.
    Unsupported {
        /// The option.
        option: &'static str,
        /// The reason.
        reason: &'static str,
        /// The nearest alternative; "" if there is none.
        instead: &'static str,
    },
    /// iosonde does not have this option of the program.
    UnsupportedProgramOption {
        /// The option, without dashes.
        option: &'static str,
        /// The reason.
        reason: &'static str,
        /// The nearest alternative; "" if there is none.
        instead: &'static str,
    },
    /// iosonde does not have this value of the option.
    UnsupportedValue {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// The reason.
        reason: &'static str,
    },
    /// The value is wrong.
    WrongValue {
        /// The option.
        option: &'static str,
        /// The problem of the value.
        problem: String,
        /// A value that would be accepted.
        help: Option<String>,
    },
    /// The value of an option of the program is wrong.
    WrongProgramValue {
        /// The option, without dashes.
        option: &'static str,
        /// The problem of the value.
        problem: String,
        /// A value that would be accepted.
        help: Option<String>,
    },
    /// The option has no value.
    MissingValue {
        /// The option.
        option: &'static str,
        /// Values that are accepted.
        accepted: String,
    },
    /// A suffix such as `kib` means steps of 1000.
    SwappedSuffix {
        /// The suffix, in lower case.
        suffix: &'static str,
    },
    /// A global option of engines that no job uses.
    OfUnusedEngine {
        /// The option.
        option: &'static str,
        /// The engines that have the option.
        engines: &'static [&'static str],
    },
    /// An option of other engines than the job's.
    OfOtherEngine {
        /// The option.
        option: &'static str,
        /// The engines that have the option.
        engines: &'static [&'static str],
        /// The engine of the job.
        engine: &'static str,
    },
}

/// An error in the list of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobListProblem {
    /// There is no job.
    NoJob,
    /// `--section` names a section that does not exist.
    UnknownSection {
        /// The name.
        name: String,
    },
    /// The clones have too many files.
    TooManyFiles {
        /// Files of all clones up to this job.
        files: u64,
        /// Greatest number.
        limit: u64,
    },
    /// The jobs have too many clones.
    TooManyClones {
        /// Clones of all jobs.
        clones: u64,
        /// Greatest number.
        limit: u32,
    },
    /// A job waits for itself.
    WaitsForItself {
        /// The job.
        job: String,
    },
    /// A job waits for a job that no earlier section defines.
    WaitsForUnknown {
        /// The job.
        job: String,
        /// The name in `wait_for`.
        name: String,
    },
    /// Several earlier jobs have the name in `wait_for`.
    WaitsForSeveral {
        /// The job.
        job: String,
        /// The name in `wait_for`.
        name: String,
        /// Number of jobs of that name.
        count: usize,
    },
    /// The text of a neighbour is empty.
    NeighbourWithoutOptions,
    /// The text of a neighbour defines several jobs.
    SeveralNeighbours,
    /// The text of a neighbour defines no job.
    NoNeighbour,
    /// A neighbour may not have this option.
    NeighbourOption {
        /// The option.
        option: String,
    },
}

/// Options of one job that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OptionConflict {
    /// The job's option has no effect because a global option overrides it.
    Overridden {
        /// The option without effect.
        option: &'static str,
        /// The option that overrides it.
        by: &'static str,
    },
    /// The option has no effect without another.
    NoEffectWithout {
        /// The option without effect.
        option: &'static str,
        /// The missing option.
        missing: &'static str,
    },
    /// A setting needs another option.
    Needs {
        /// The setting, e.g. `zonemode=strided`.
        setting: String,
        /// The missing option.
        missing: &'static str,
    },
    /// Two options exclude each other.
    Excluded {
        /// The options.
        options: [&'static str; 2],
    },
    /// Blocks are not aligned, although I/O is direct.
    UnalignedDirect,
    /// The offset is more than 100 % of a file.
    OffsetBeyondFile,
    /// A size or an offset does not fit into `off_t`.
    BeyondLongestFile {
        /// The size or the offset in bytes.
        bytes: u64,
    },
    /// The size of the job is smaller than a block.
    SizeBelowBlock {
        /// The size in bytes.
        bytes: u64,
        /// The smallest block in bytes.
        block_bytes: u64,
    },
    /// Each file of the job is smaller than a block.
    FileBelowBlock {
        /// The size of a file in bytes.
        bytes: u64,
        /// The smallest block in bytes.
        block_bytes: u64,
    },
    /// `latency_target` without `latency_window`.
    NoLatencyWindow,
    /// A least rate is above the rate itself.
    MinimumAboveRate {
        /// The option of the least rate.
        low: &'static str,
        /// The option of the rate.
        high: &'static str,
        /// The direction.
        direction: &'static str,
    },
    /// A log has the times of another clock than `CLOCK_REALTIME`.
    UnsupportedLogClock,
    /// The histogram log has no interval.
    EmptyHistogramLog,
    /// The option repeats or limits I/O, but a trace is replayed once.
    TraceReplayedOnce {
        /// The option without effect.
        option: &'static str,
    },
    /// `--readonly` with a job that writes or trims.
    ReadonlyWriter {
        /// The value of `rw`.
        rw: &'static str,
    },
}

/// Options of one job that do not fit its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineConflict {
    /// The option is not supported with the engine.
    UnsupportedWithEngine {
        /// The option.
        option: &'static str,
        /// The engine.
        engine: &'static str,
    },
    /// The option is not supported on a simulated device.
    UnsupportedOnSim {
        /// The option.
        option: &'static str,
    },
    /// `io_submit_mode=offload` with an engine that waits for each I/O.
    OffloadToWaitingEngine {
        /// The engine.
        engine: &'static str,
    },
    /// An engine that waits for each I/O has a queue.
    DepthOfWaitingEngine {
        /// The engine.
        engine: &'static str,
    },
    /// `posixaio` has a queue.
    DepthOfPosixaio,
    /// An engine without paths replays a trace.
    TraceWithoutPaths {
        /// The engine.
        engine: &'static str,
    },
}

/// Options of a job that do not fit its verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerifyConflict {
    /// `verify_only` without a method.
    OnlyWithoutMethod,
    /// The verify phase is never reached.
    NeverReached,
    /// The interval does not divide the block sizes.
    IntervalReduced {
        /// The interval that is used instead, in bytes.
        interval_bytes: u64,
    },
    /// Clones overwrite each other's blocks.
    SharedWriters,
    /// The job replays a trace, which has no data.
    OfTrace,
}

impl From<SyntaxProblem> for DiagnosticCause {
    fn from(problem: SyntaxProblem) -> Self {
        DiagnosticCause::Syntax(problem)
    }
}

impl From<OptionProblem> for DiagnosticCause {
    fn from(problem: OptionProblem) -> Self {
        DiagnosticCause::Option(problem)
    }
}

impl From<JobListProblem> for DiagnosticCause {
    fn from(problem: JobListProblem) -> Self {
        DiagnosticCause::Jobs(problem)
    }
}

impl From<OptionConflict> for DiagnosticCause {
    fn from(conflict: OptionConflict) -> Self {
        DiagnosticCause::Conflict(conflict)
    }
}

impl From<EngineConflict> for DiagnosticCause {
    fn from(conflict: EngineConflict) -> Self {
        DiagnosticCause::Engine(conflict)
    }
}

impl From<VerifyConflict> for DiagnosticCause {
    fn from(conflict: VerifyConflict) -> Self {
        DiagnosticCause::Verify(conflict)
    }
}
