//! Rules between several options of a job: which overrides which, which cannot be combined.

use super::MAX_FILES;
use crate::diagnostic::{Diagnostic, Diagnostics};
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

    pub(super) fn error(&mut self, b: &JobBuilder, option: &str, message: impl Into<String>) {
        let error = Diagnostic::error(message).at(self.place(b, option));
        self.diagnostics.push(error);
    }

    fn warn(&mut self, b: &JobBuilder, option: &str, message: impl Into<String>) {
        let warning = Diagnostic::warning(message).at(self.place(b, option));
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
                let message = format!("`{loser}` has no effect: `{winner}` overrides it");
                self.warn(b, loser, message);
            }
        }
        if b.job.workload.bs_unaligned && b.job.io.direct {
            self.warn(
                b,
                "bs_unaligned",
                "unaligned blocks may fail with `direct=1`",
            );
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
            self.error(b, "offset", "the offset is beyond the end of the file");
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
                let message = format!(
                    "{bytes} bytes exceed the maximum file size of {MAX_FILE_BYTES} bytes (8 EiB)"
                );
                self.error(b, option, message);
            }
        }
    }

    /// Checks that each file holds at least one block.
    fn size_against_block(&mut self, b: &JobBuilder) {
        let workload = &b.job.workload;
        let smallest = workload
            .block_size
            .iter()
            .filter(|(direction, _)| workload.rw.has(*direction))
            .map(|(_, size)| size.min())
            .min()
            .unwrap_or(0);
        let files = &b.job.files;
        if let Some(BytesOrPercent::Bytes(bytes)) = files.size
            && bytes < smallest
        {
            let message = format!(
                "the size of {bytes} bytes is smaller than the smallest block of {smallest} bytes"
            );
            return self.error(b, "size", message);
        }
        let (option, bytes) = match (files.filesize, files.size) {
            (Some((_, high)), _) => ("filesize", high),
            // Too many files are reported by another check.
            (None, Some(BytesOrPercent::Bytes(bytes))) if u64::from(files.nrfiles) <= MAX_FILES => {
                ("size", bytes / u64::from(files.nrfiles))
            }
            _ => return,
        };
        if bytes < smallest {
            let message = format!(
                "a file of {bytes} bytes is smaller than the smallest block of {smallest} bytes"
            );
            self.error(b, option, message);
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
            let message = "`dedupe_global` has no effect without `dedupe_mode=working_set`";
            self.warn(b, "dedupe_global", message);
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
            let message = "`cmdprio_percentage` and `cmdprio_bssplit` cannot be combined";
            self.error(b, "cmdprio_bssplit", message);
        }
        self.depth_of_waiting_engines(b);
        self.ceph(b);
        for option in ["exec_prerun", "exec_postrun"] {
            if b.job.io.engine == Engine::Sim && b.is_given(option) {
                let message = format!("`{option}` is not supported with the simulated device");
                self.error(b, option, message);
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
            let message = format!("`ioengine={}` needs `{option}`", engine.name());
            self.error(b, "ioengine", message);
        }
        b.job.io.ceph = Some(Box::new(b.ceph.clone()));
        for option in ["fill_device", "unlink_each_loop", "file_append", "opendir"] {
            if b.is_given(option) {
                let message = format!(
                    "`{option}` is not supported with `ioengine={}`",
                    engine.name()
                );
                self.error(b, option, message);
            }
        }
    }

    fn depth_of_waiting_engines(&mut self, b: &JobBuilder) {
        if self.engine_of_target {
            return;
        }
        let engine = b.job.io.engine;
        let waits = matches!(
            engine,
            Engine::Sync | Engine::Psync | Engine::Pvsync | Engine::Pvsync2 | Engine::Mmap
        );
        if waits && b.job.io.iodepth > 1 && b.job.io.offload && !b.is_refused() {
            let message = format!(
                "`io_submit_mode=offload` needs a thread per I/O to keep several I/Os of `{}` in \
                 flight, and is not supported",
                engine.name()
            );
            let error = Diagnostic::error(message)
                .at(self.place(b, "io_submit_mode"))
                .help("use `ioengine=io_uring` or `ioengine=libaio`, which need no thread per I/O");
            self.diagnostics.push(error);
        } else if waits && b.job.io.iodepth > 1 && !b.is_refused() {
            let message = format!(
                "`{}` waits for each I/O, so the depth is 1 at any `iodepth`",
                engine.name()
            );
            let warning = Diagnostic::warning(message)
                .at(self.place(b, "iodepth"))
                .help("use `ioengine=io_uring` or `ioengine=libaio` for a higher depth");
            self.diagnostics.push(warning);
        } else if engine == Engine::Posixaio && b.job.io.iodepth > 1 && !b.is_refused() {
            let message = "the C library runs one I/O of `posixaio` at a time per file: the device \
                           gets a depth of 1 per file, and latencies include the wait";
            let warning = Diagnostic::warning(message)
                .at(self.place(b, "iodepth"))
                .help("use `ioengine=io_uring` or `ioengine=libaio` for a higher depth");
            self.diagnostics.push(warning);
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
            self.warn(
                b,
                "time_based",
                "`time_based` has no effect without `runtime`",
            );
        }
        if b.latency.target_ns > 0 && b.latency.window_ns == 0 {
            let message = "`latency_window` is missing: each depth runs for 1 s";
            self.warn(b, "latency_target", message);
            if let Some(target) = &mut b.job.schedule.latency_target {
                target.window_ns = SECOND_NS;
            }
        }
    }

    fn measure(&mut self, b: &mut JobBuilder) {
        let is_logging = b.job.measure.logs.is_any();
        if b.alternate_epoch && b.alternate_clock != 0 && is_logging {
            let message = "only clock 0 (CLOCK_REALTIME) can be logged";
            self.error(b, "log_alternate_epoch_clock_id", message);
        }
        b.job.measure.logs.unix_epoch |= b.alternate_epoch;
        let logs = &b.job.measure.logs;
        if logs.hist.is_some() && logs.hist_ms == 0 {
            let message = "the histogram log is empty without `log_hist_msec`";
            self.warn(b, "write_hist_log", message);
        }
    }

    fn verify(&mut self, b: &mut JobBuilder) {
        // As in fio, `verify_pattern` without `verify` selects `verify=pattern`.
        let pattern_alone = b.verify.pattern.is_some() && !b.is_given("verify");
        let method = match b.verify_method {
            None if pattern_alone => VerifyMethod::Pattern,
            None if b.verify.verify_only && b.job.workload.rw.has(Direction::Write) => {
                return self.verify_only_without_method(b);
            }
            None => return,
            Some(method) => method,
        };
        if method == VerifyMethod::Pattern && b.verify.pattern.is_none() {
            let message = "`verify=pattern` needs `verify_pattern`";
            return self.error(b, "verify", message);
        }
        if b.verify.verify_only && b.job.schedule.time_based {
            self.error(
                b,
                "verify_only",
                "`verify_only` and `time_based` cannot be combined",
            );
        }
        b.verify.method = method;
        self.verify_interval(b);
        self.verify_phase(b);
        self.shared_writers(b);
        b.job.verify = Some(b.verify.clone());
    }

    /// Refuses `verify_only` alone: fio then does no I/O, yet reports writes.
    fn verify_only_without_method(&mut self, b: &JobBuilder) {
        let message = "`verify_only` without `verify` would do no I/O";
        let error = Diagnostic::error(message).at(self.place(b, "verify_only"));
        self.diagnostics
            .push(error.help("add verify= with the method of the job that wrote the data"));
    }

    /// Warns about a job that never reaches its verify phase.
    fn verify_phase(&mut self, b: &JobBuilder) {
        let job = &b.job;
        let reads_back = b.verify.do_verify && job.workload.rw.has(Direction::Write);
        if reads_back && job.schedule.time_based && b.verify.backlog == 0 && !b.verify.verify_only {
            let message = "no data is verified: with `time_based`, writes use the whole runtime";
            let warning = Diagnostic::warning(message)
                .at(self.place(b, "verify"))
                .help("add `verify_backlog`, which verifies during the writes");
            self.diagnostics.push(warning);
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
            b.verify.interval_bytes = greatest_common_divisor(common, wanted);
            let message = format!(
                "`verify_interval` does not divide the block sizes: {} bytes are used instead",
                b.verify.interval_bytes
            );
            self.warn(b, "verify_interval", message);
        }
    }

    fn shared_writers(&mut self, b: &JobBuilder) {
        let job = &b.job;
        let writes = job.workload.rw.has(Direction::Write) && b.verify.do_verify;
        let shares = !job.files.filenames.is_empty();
        let apart = job.files.offset_increment != BytesOrPercent::Bytes(0);
        if writes && shares && !apart && job.numjobs > 1 {
            let message = "clones write the same file and may overwrite each other's blocks, which \
                           verification reports as errors";
            self.warn(b, "numjobs", message);
        }
    }

    /// Sets the replay. A trace overrides `rw`, and options for patterns have no effect on it.
    fn replay(&mut self, b: &mut JobBuilder) {
        if b.replay.traces.is_empty() {
            let options = ["replay_no_stall", "replay_redirect", "replay_time_scale"];
            for option in options.into_iter().filter(|option| b.own.contains(option)) {
                let message = format!("`{option}` has no effect without `read_iolog`");
                self.warn(b, option, message);
            }
            return;
        }
        if b.job.verify.is_some() {
            let message = "`verify` does not work with `read_iolog`: a trace has no data";
            self.error(b, "verify", message);
        }
        let engine = b.job.io.engine;
        if engine.is_ceph() {
            let message = format!(
                "`{}` cannot replay a trace, because a trace opens files by name",
                engine.name()
            );
            let error = Diagnostic::error(message)
                .at(self.place(b, "read_iolog"))
                .help("map the image (`rbd map`) and set `replay_redirect` to the device");
            self.diagnostics.push(error);
        }
        for option in ["loops", "time_based", "number_ios", "io_size"] {
            if b.own.contains(option) {
                let message =
                    format!("`{option}` has no effect: a trace is replayed once, as in fio");
                self.warn(b, option, message);
            }
        }
        b.job.replay = Some(b.replay.clone());
    }

    fn check_readonly(&mut self, b: &JobBuilder) {
        let rw = b.job.workload.rw;
        if self.readonly && (rw.has(Direction::Write) || rw.has(Direction::Trim)) {
            let message = format!("`--readonly` forbids `rw={}`", rw.name());
            self.error(b, "rw", message);
        }
    }
}

impl JobBuilder {
    fn is_refused(&self) -> bool {
        super::apply::is_engine_refused(self)
    }
}
