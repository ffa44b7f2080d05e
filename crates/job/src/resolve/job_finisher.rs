//! Rules between several options of a job: which overrides which, which cannot be combined.

use super::MAX_FILES;
use crate::diagnostic::{
    Diagnostic, DiagnosticCause, Diagnostics, EngineConflict, OptionConflict, VerifyConflict,
};
use crate::env::Env;
use crate::options::JobBuilder;
use crate::plan::*;
use crate::source::Span;
use crate::value::greatest_common_divisor;

const SECOND_NS: u64 = 1_000_000_000;

/// Turns a builder into a job.
pub(super) struct JobFinisher<'a> {
    pub(super) env: &'a dyn Env,
    pub(super) diagnostics: &'a mut Diagnostics,
    /// The span of the job's name, for errors that belong to no single option.
    pub(super) header: Span,
    /// `--readonly`.
    pub(super) readonly: bool,
    /// Whether the target determines the engine, regardless of `ioengine`.
    pub(super) engine_of_target: bool,
}

impl JobFinisher<'_> {
    pub(super) fn finish_job(&mut self, mut b: JobBuilder) -> Job {
        self.block_sizes(&mut b);
        self.files(&mut b);
        self.random_map(&mut b);
        self.buffers(&mut b);
        self.zones(&mut b);
        self.io_method(&mut b);
        self.schedule(&mut b);
        self.rates(&b);
        self.measure(&mut b);
        self.verify(&mut b);
        self.replay(&mut b);
        self.check_readonly(&b);
        b.job
    }

    pub(super) fn place(&self, b: &JobBuilder, option: &str) -> Span {
        b.given.get(option).copied().unwrap_or(self.header)
    }

    pub(super) fn error(
        &mut self,
        b: &JobBuilder,
        option: &str,
        cause: impl Into<DiagnosticCause>,
    ) {
        let error = Diagnostic::error_from(cause).at(self.place(b, option));
        self.diagnostics.push(error);
    }

    fn warn(&mut self, b: &JobBuilder, option: &str, cause: impl Into<DiagnosticCause>) {
        let warning = Diagnostic::warning_from(cause).at(self.place(b, option));
        self.diagnostics.push(warning);
    }

    /// `bssplit` overrides `bsrange`, which overrides `bs`, in any order.
    fn block_sizes(&mut self, b: &mut JobBuilder) {
        b.job.workload.block_size = PerDirection::from_fn(|direction| {
            if let Some(split) = &b.bssplit {
                split[direction].clone()
            } else if let Some((min, max)) = b.bsrange[direction] {
                match min == max {
                    true => BlockSize::Fixed(min),
                    false => BlockSize::Range { min, max },
                }
            } else {
                BlockSize::Fixed(b.bs[direction])
            }
        });
        for (winner, loser) in [("bssplit", "bs"), ("bssplit", "bsrange"), ("bsrange", "bs")] {
            if b.own.contains(loser) && b.is_given(winner) && !b.own.contains(winner) {
                let overridden = OptionConflict::Overridden {
                    option: loser,
                    by: winner,
                };
                self.warn(b, loser, overridden);
            }
        }
        if b.job.workload.bs_unaligned && b.job.io.direct {
            self.warn(b, "bs_unaligned", OptionConflict::UnalignedDirect);
        }
    }

    fn files(&mut self, b: &mut JobBuilder) {
        let name = b.job.name.clone();
        let files = &mut b.job.files;
        let is_named = !files.filenames.is_empty() || !files.opendir.is_empty();
        if !is_named && files.nrfiles == 1 && self.env.is_device(&name) {
            files.filenames = vec![name];
        }
        if !files.filenames.is_empty() {
            files.nrfiles = files.filenames.len() as u32;
        }
        if files.pre_read {
            files.invalidate = false;
        }
        if matches!(files.offset, BytesOrPercent::Percent(percent) if percent > 100.0) {
            self.error(b, "offset", OptionConflict::OffsetBeyondFile);
        }
        self.ends_of_files(b);
        self.size_against_block(b);
    }

    /// Checks that sizes and offsets fit into `off_t`.
    fn ends_of_files(&mut self, b: &JobBuilder) {
        let files = &b.job.files;
        let bytes = |extent| match extent {
            BytesOrPercent::Bytes(bytes) => bytes,
            BytesOrPercent::Percent(_) => 0,
        };
        for (option, bytes) in [
            ("size", files.size.map_or(0, bytes)),
            ("filesize", files.filesize.map_or(0, |(_, high)| high)),
            ("offset", bytes(files.offset)),
            ("offset_increment", bytes(files.offset_increment)),
        ] {
            if bytes > MAX_FILE_BYTES {
                self.error(b, option, OptionConflict::BeyondLongestFile { bytes });
            }
        }
    }

    /// Checks that each file holds at least one block.
    fn size_against_block(&mut self, b: &JobBuilder) {
        let workload = &b.job.workload;
        let block_bytes = workload
            .block_size
            .iter()
            .filter(|(direction, _)| workload.rw.has(*direction))
            .map(|(_, size)| size.min())
            .min()
            .unwrap_or(0);
        let files = &b.job.files;
        if let Some(BytesOrPercent::Bytes(bytes)) = files.size
            && bytes < block_bytes
        {
            let below = OptionConflict::SizeBelowBlock { bytes, block_bytes };
            return self.error(b, "size", below);
        }
        let (option, bytes) = match (files.filesize, files.size) {
            (Some((_, high)), _) => ("filesize", high),
            // Too many files are reported by another check.
            (None, Some(BytesOrPercent::Bytes(bytes))) if u64::from(files.nrfiles) <= MAX_FILES => {
                ("size", bytes / u64::from(files.nrfiles))
            }
            _ => return,
        };
        if bytes < block_bytes {
            let below = OptionConflict::FileBelowBlock { bytes, block_bytes };
            self.error(b, option, below);
        }
    }

    fn random_map(&mut self, b: &mut JobBuilder) {
        let workload = &mut b.job.workload;
        let even = matches!(workload.distribution, Distribution::Random);
        let aligned = b.given.contains_key("ba");
        let lfsr = workload.random_generator == RandomGenerator::Lfsr;
        workload.random_map = if !even || aligned || (b.norandommap && !lfsr) {
            RandomMap::None
        } else if b.softrandommap {
            RandomMap::Soft
        } else {
            RandomMap::Exact
        };
    }

    fn buffers(&mut self, b: &mut JobBuilder) {
        let buffers = &mut b.job.workload.buffers;
        let given = &b.buffers;
        buffers.fill = if let Some(pattern) = &given.pattern {
            BufferFill::Pattern(pattern.clone())
        } else if given.zero {
            BufferFill::Zero
        } else if given.refill {
            BufferFill::Refill
        } else if given.no_scramble {
            BufferFill::Once
        } else {
            BufferFill::Scramble
        };
        if given.working_set {
            buffers.dedupe_working_set_percent = Some(given.working_set_percent.unwrap_or(5));
        }
        if buffers.dedupe_global && buffers.dedupe_working_set_percent.is_none() {
            buffers.dedupe_global = false;
            let option = "dedupe_global";
            let missing = "dedupe_mode=working_set";
            self.warn(
                b,
                option,
                OptionConflict::NoEffectWithout { option, missing },
            );
        }
    }

    fn io_method(&mut self, b: &mut JobBuilder) {
        let io = &mut b.job.io;
        let depth = io.iodepth;
        // As in fio, 0 and numbers above `iodepth` both mean the whole depth.
        io.batch_submit = io
            .batch_submit
            .map(|n| if n == 0 { depth } else { n.min(depth) });
        io.batch_complete_min = io.batch_complete_min.min(depth);
        io.batch_complete_max = io
            .batch_complete_max
            .map(|max| max.max(io.batch_complete_min));
        io.iodepth_low = io.iodepth_low.map(|low| low.min(depth));
        if io.uring.sqthread_poll && io.uring.registerfiles.is_none() {
            io.uring.registerfiles = Some(true);
        }
        if b.prio.is_some() || b.prioclass.is_some() {
            let best_effort = 2;
            io.ioprio = Some(IoPriority {
                class: b.prioclass.unwrap_or(best_effort),
                level: b.prio.unwrap_or(0),
            });
        }
        let percent_given = io.cmdprio_percent.iter().any(|(_, percent)| *percent > 0);
        if percent_given && io.cmdprio_split.is_some() {
            let options = ["cmdprio_percentage", "cmdprio_bssplit"];
            self.error(b, options[1], OptionConflict::Excluded { options });
        }
        self.depth_of_waiting_engines(b);
        self.rw_flags(b);
        self.ceph(b);
        for option in ["exec_prerun", "exec_postrun"] {
            if b.job.io.engine == Engine::Sim && b.is_given(option) {
                self.error(b, option, EngineConflict::UnsupportedOnSim { option });
            }
        }
    }

    /// Requires a pool or an image, and refuses file options that do not apply to them.
    fn ceph(&mut self, b: &mut JobBuilder) {
        let engine = b.job.io.engine;
        if !engine.is_ceph() {
            return;
        }
        let ceph = &b.ceph;
        let missing = match engine {
            _ if ceph.pool.is_empty() => Some("pool"),
            Engine::Rbd if ceph.image.is_none() => Some("rbdname"),
            _ => None,
        };
        if let Some(option) = missing {
            let needs = OptionConflict::Needs {
                setting: format!("ioengine={}", engine.name()),
                missing: option,
            };
            self.error(b, "ioengine", needs);
        }
        b.job.io.ceph = Some(Box::new(b.ceph.clone()));
        for option in ["fill_device", "unlink_each_loop", "file_append", "opendir"] {
            if b.is_given(option) {
                let engine = engine.name();
                let unsupported = EngineConflict::UnsupportedWithEngine { option, engine };
                self.error(b, option, unsupported);
            }
        }
    }

    /// Checks `atomic` and `uncached`. As in fio, `atomic` has no effect on a job that only reads.
    fn rw_flags(&mut self, b: &mut JobBuilder) {
        let engine = b.job.io.engine;
        let has_flags = matches!(
            engine,
            Engine::Auto | Engine::IoUring | Engine::Libaio | Engine::Pvsync2
        );
        if b.job.io.atomic && !has_flags {
            let (option, engine) = ("atomic", engine.name());
            let unsupported = EngineConflict::UnsupportedWithEngine { option, engine };
            self.error(b, option, unsupported);
        } else if b.job.io.atomic && !b.job.workload.rw.has(Direction::Write) {
            b.job.io.atomic = false;
        } else if b.job.io.atomic && !b.job.io.direct {
            let needs = OptionConflict::Needs {
                setting: "atomic=1".to_owned(),
                missing: "direct=1",
            };
            self.error(b, "atomic", needs);
        }
        if b.job.io.uncached && b.job.io.direct {
            b.job.io.uncached = false;
            let (option, missing) = ("uncached", "direct=0");
            let no_effect = OptionConflict::NoEffectWithout { option, missing };
            self.warn(b, option, no_effect);
        }
    }

    fn depth_of_waiting_engines(&mut self, b: &JobBuilder) {
        if self.engine_of_target {
            return;
        }
        let engine = b.job.io.engine;
        if b.job.io.iodepth <= 1 || b.is_refused() {
            return;
        }
        let waits = matches!(
            engine,
            Engine::Sync | Engine::Psync | Engine::Pvsync | Engine::Pvsync2 | Engine::Mmap
        );
        let is_posixaio = engine == Engine::Posixaio;
        let engine = engine.name();
        if waits && b.job.io.offload {
            let offload = EngineConflict::OffloadToWaitingEngine { engine };
            self.error(b, "io_submit_mode", offload);
        } else if waits {
            self.warn(
                b,
                "iodepth",
                EngineConflict::DepthOfWaitingEngine { engine },
            );
        } else if is_posixaio {
            self.warn(b, "iodepth", EngineConflict::DepthOfPosixaio);
        }
    }

    fn schedule(&mut self, b: &mut JobBuilder) {
        let schedule = &mut b.job.schedule;
        if b.thinktime.pause_ns > 0 {
            b.thinktime.spin_ns = b.thinktime.spin_ns.min(b.thinktime.pause_ns);
            // The default of one block would always be reached before `thinktime_iotime`.
            if b.thinktime.iotime_ns > 0 && !b.given.contains_key("thinktime_blocks") {
                b.thinktime.blocks = u32::MAX;
            }
            schedule.thinktime = Some(b.thinktime);
        }
        if b.flow.weight != 0 {
            schedule.flow = Some(b.flow);
        }
        if b.steady.duration_ns > 0 {
            schedule.steady_state = Some(b.steady);
        }
        if b.latency.target_ns > 0 {
            schedule.latency_target = Some(b.latency);
        }
        let endless = schedule.time_based && schedule.runtime_ns == 0;
        schedule.time_based &= !endless;
        if endless {
            let option = "time_based";
            let missing = "runtime";
            self.warn(
                b,
                option,
                OptionConflict::NoEffectWithout { option, missing },
            );
        }
        if b.latency.target_ns > 0 && b.latency.window_ns == 0 {
            self.warn(b, "latency_target", OptionConflict::NoLatencyWindow);
            if let Some(target) = &mut b.job.schedule.latency_target {
                target.window_ns = SECOND_NS;
            }
        }
    }

    fn measure(&mut self, b: &mut JobBuilder) {
        let is_logging = b.job.measure.logs.is_any();
        if b.alternate_epoch && b.alternate_clock != 0 && is_logging {
            let clock = OptionConflict::UnsupportedLogClock;
            self.error(b, "log_alternate_epoch_clock_id", clock);
        }
        b.job.measure.logs.unix_epoch |= b.alternate_epoch;
        let logs = &b.job.measure.logs;
        if logs.hist.is_some() && logs.hist_ms == 0 {
            self.warn(b, "write_hist_log", OptionConflict::EmptyHistogramLog);
        }
    }

    fn verify(&mut self, b: &mut JobBuilder) {
        // As in fio, `verify_pattern` without `verify` selects `verify=pattern`.
        let pattern_alone = b.verify.pattern.is_some() && !b.is_given("verify");
        let method = match b.verify_method {
            None if pattern_alone => VerifyMethod::Pattern,
            // fio then does no I/O, yet reports writes.
            None if b.verify.verify_only && b.job.workload.rw.has(Direction::Write) => {
                return self.error(b, "verify_only", VerifyConflict::OnlyWithoutMethod);
            }
            None => return,
            Some(method) => method,
        };
        if method == VerifyMethod::Pattern && b.verify.pattern.is_none() {
            let needs = OptionConflict::Needs {
                setting: "verify=pattern".to_owned(),
                missing: "verify_pattern",
            };
            return self.error(b, "verify", needs);
        }
        if b.verify.verify_only && b.job.schedule.time_based {
            let options = ["verify_only", "time_based"];
            self.error(b, options[0], OptionConflict::Excluded { options });
        }
        b.verify.method = method;
        self.verify_interval(b);
        self.verify_phase(b);
        self.shared_writers(b);
        b.job.verify = Some(b.verify.clone());
    }

    /// Warns about a job that never reaches its verify phase.
    fn verify_phase(&mut self, b: &JobBuilder) {
        let job = &b.job;
        let reads_back = b.verify.do_verify && job.workload.rw.has(Direction::Write);
        if reads_back && job.schedule.time_based && b.verify.backlog == 0 && !b.verify.verify_only {
            self.warn(b, "verify", VerifyConflict::NeverReached);
        }
    }

    /// Makes the interval divide every block size; the default is their common divisor.
    fn verify_interval(&mut self, b: &mut JobBuilder) {
        let sizes = &b.job.workload.block_size.write;
        let (min, max) = (sizes.min(), sizes.max());
        let common = match sizes {
            BlockSize::Split(split) if b.job.workload.bs_unaligned => {
                let sizes = split.iter().map(|part| part.0);
                sizes.fold(0, greatest_common_divisor)
            }
            // Block sizes are rounded to multiples of the smallest.
            BlockSize::Split(_) => min,
            _ => greatest_common_divisor(min, max),
        };
        let wanted = b.verify.interval_bytes;
        if wanted == 0 {
            if min != max {
                b.verify.interval_bytes = common;
            }
        } else if !common.is_multiple_of(wanted) {
            let interval_bytes = greatest_common_divisor(common, wanted);
            b.verify.interval_bytes = interval_bytes;
            let reduced = VerifyConflict::IntervalReduced { interval_bytes };
            self.warn(b, "verify_interval", reduced);
        }
    }

    fn shared_writers(&mut self, b: &JobBuilder) {
        let job = &b.job;
        let writes = job.workload.rw.has(Direction::Write) && b.verify.do_verify;
        let shares = !job.files.filenames.is_empty();
        let apart = job.files.offset_increment != BytesOrPercent::Bytes(0);
        if writes && shares && !apart && job.numjobs > 1 {
            self.warn(b, "numjobs", VerifyConflict::SharedWriters);
        }
    }

    /// Sets the replay. A trace overrides `rw`, and options for patterns have no effect on it.
    fn replay(&mut self, b: &mut JobBuilder) {
        if b.replay.traces.is_empty() {
            let options = ["replay_no_stall", "replay_redirect", "replay_time_scale"];
            for option in options.into_iter().filter(|option| b.own.contains(option)) {
                let missing = "read_iolog";
                self.warn(
                    b,
                    option,
                    OptionConflict::NoEffectWithout { option, missing },
                );
            }
            return;
        }
        if b.job.verify.is_some() {
            self.error(b, "verify", VerifyConflict::OfTrace);
        }
        let engine = b.job.io.engine;
        if engine.is_ceph() {
            let engine = engine.name();
            self.error(
                b,
                "read_iolog",
                EngineConflict::TraceWithoutPaths { engine },
            );
        }
        for option in ["loops", "time_based", "number_ios", "io_size"] {
            if b.own.contains(option) {
                self.warn(b, option, OptionConflict::TraceReplayedOnce { option });
            }
        }
        b.job.replay = Some(b.replay.clone());
    }

    fn check_readonly(&mut self, b: &JobBuilder) {
        let rw = b.job.workload.rw;
        if self.readonly && (rw.has(Direction::Write) || rw.has(Direction::Trim)) {
            self.error(b, "rw", OptionConflict::ReadonlyWriter { rw: rw.name() });
        }
    }
}

impl JobBuilder {
    fn is_refused(&self) -> bool {
        super::apply::is_engine_refused(self)
    }
}
