//! `iosonde rados bench`.

use super::bench_plan::{ObjectStorage, RadosRows, plan_rados_bench};
use super::objects::{WrittenObjects, host_name, object_name, prefix};
use super::pool::Pool;
use crate::args::{AccessArgs, BenchArgs, BenchFormat};
use crate::commands::bench_table::BenchTable;
use crate::commands::ceph::remote_storage;
use crate::commands::finish_command;
use crate::failure::CommandError;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_engine::runner::LocalRunner;
use iosonde_history::HistoryWriter;
use iosonde_job::errno::errno_name;
use iosonde_job::plan::{Ceph, CephAccess, ObjectNames};
use iosonde_report::rados::{self, RadosHeader, RadosSummary, Seconds};
use iosonde_result::run::{IoFailure, RunResult, WorkerResult};
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use rustix::io::Errno;

/// A benchmark, with the data that was read from the pool.
struct Benchmark<'a> {
    args: &'a BenchArgs,
    head: RadosHeader,
    /// Number of operations, if limited.
    ops: Option<u64>,
    pid: u32,
    /// Whether this run created the first object to reserve the names.
    has_reserved: bool,
}

/// The outcome of a benchmark.
struct BenchMeasurement {
    outcome: Result<RunResult, RunError>,
    /// The result of closing its session.
    closed: Result<(), RunError>,
    /// Figures of each second.
    seconds: Seconds,
    /// Whether the lines of the seconds could be written.
    shown: Result<(), CommandError>,
}

/// Measures, prints, and removes the written objects.
pub(super) fn run(args: &BenchArgs, access: &AccessArgs) -> Result<(), CommandError> {
    let (sizes, written_parts) = (args.sizes()?, args.parts()?);
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let mut output = Output::open_report(args.output.as_deref())?;
    let pool = Pool::open(access)?;
    let benchmark = Benchmark::new(args, sizes, &pool)?;
    let place = ObjectStorage::Pool(Box::new(Ceph {
        access: access.access(),
        pool: access.pool()?.to_owned(),
        namespace: access.namespace.clone(),
        object_bytes: Some(benchmark.head.object_bytes),
        object_names: ObjectNames::RadosBench,
        touch_objects: false,
        written_parts,
        ..Ceph::default()
    }));
    let cpu_before_ns = processor_ns();
    history_writer.begin("rados bench", pool.target());
    let measured = match benchmark.measure(place, &stop, &mut output, &mut history_writer) {
        Ok(measured) => measured,
        Err(failure) => {
            crate::commands::print_notes(&mut history_writer);
            let cleaned = benchmark.remove(&pool, 0, &stop);
            return finish_command([Err(failure), cleaned], Ok(()));
        }
    };
    let BenchMeasurement {
        mut outcome,
        closed,
        seconds,
        shown,
    } = measured;
    let cpu_ns = processor_ns().saturating_sub(cpu_before_ns);
    let reported = match &mut outcome {
        Ok(result) => {
            history_writer.label_run(result);
            let printed = benchmark.print(&seconds, result, cpu_ns, output);
            history_writer.store_run(result);
            history_writer.cut_off(stop.signal().is_some());
            history_writer.finish(None);
            printed.and_then(|()| conclude(&benchmark.head, result, &stop))
        }
        Err(error) => Err(CommandError::Run(error.clone())),
    };
    crate::commands::print_notes(&mut history_writer);
    // Removal may be slow or fail, so it follows the report.
    let cleaned = benchmark.leave(&pool, &seconds, outcome.as_ref().ok(), &stop);
    finish_command([shown, reported, cleaned], closed)
}

impl<'a> Benchmark<'a> {
    fn new(
        args: &'a BenchArgs,
        sizes: (u64, u64),
        pool: &Pool,
    ) -> Result<Benchmark<'a>, CommandError> {
        let last = match args.mode.is_write() && !args.reuse_bench {
            true => None,
            false => pool.written(&args.run_name)?,
        };
        if last.is_none() && !args.mode.is_write() {
            return Err(CommandError::usage(
                format!(
                    "{}: there is nothing to read: no benchmark has written the object {}",
                    pool.target(),
                    args.run_name
                ),
                "write objects first: iosonde rados bench -p POOL SECONDS write --no-cleanup",
            ));
        }
        let host = host_name();
        let pid = match &last {
            Some(last) => last.pid,
            None => pool.reserve_names(&host, std::process::id())?,
        };
        let (op_bytes, object_bytes) = match &last {
            Some(last) if !args.mode.is_write() => (last.op_bytes, last.object_bytes),
            _ => sizes,
        };
        let ops = match (args.mode.is_write(), &last) {
            (false, Some(last)) => Some(u64::from(last.ops)),
            _ => (args.max_objects > 0).then(|| args.max_objects * (object_bytes / op_bytes)),
        };
        Ok(Benchmark {
            args,
            head: RadosHeader {
                mode: args.mode,
                concurrent: args.concurrent,
                op_bytes,
                object_bytes,
                seconds: args.seconds,
                max_objects: args.max_objects,
                prefix: prefix(&host, pid),
            },
            ops,
            pid,
            has_reserved: last.is_none(),
        })
    }

    /// Runs the benchmark, in plain format with a line each second. An error means no writes.
    fn measure(
        &self,
        place: ObjectStorage,
        stop: &StopSignal,
        output: &mut Output,
        history_writer: &mut HistoryWriter,
    ) -> Result<BenchMeasurement, CommandError> {
        let mut plan = plan_rados_bench(&self.head, self.ops, !self.args.no_verify, place)?;
        plan.count_stops();
        let mut session = LocalRunner {
            interrupt: stop.interrupt.clone(),
            keep_files: true,
            remote: remote_storage(CephAccess::default()),
            ..LocalRunner::default()
        }
        .open();
        let lines = match self.args.format {
            BenchFormat::Plain => {
                output.stream()?;
                Some(output)
            }
            BenchFormat::Json | BenchFormat::JsonPretty => None,
        };
        let rows = RadosRows::new(&self.head, self.ops, self.args.show_time, current_time_text);
        let mut live = BenchTable::new(rows, lines);
        let outcome = history_writer.run(&mut session, &plan, &mut live);
        let closed = Box::new(session).close();
        let (RadosRows { seconds, .. }, shown) = live.finish(outcome.as_ref().ok());
        Ok(BenchMeasurement {
            outcome,
            closed,
            seconds,
            shown,
        })
    }

    /// With `--no-cleanup` describes the written objects for later readers, otherwise removes them.
    fn leave(
        &self,
        pool: &Pool,
        seconds: &Seconds,
        result: Option<&RunResult>,
        stop: &StopSignal,
    ) -> Result<(), CommandError> {
        if !self.head.mode.is_write() {
            return Ok(());
        }
        // Without a result, only the completions up to the last second are known. At most the queue
        // depth can have been started since.
        let begun = result.map(|result| result.workers.first().map_or(0, begun));
        let ops = begun.unwrap_or_else(|| seconds.started());
        let written = WrittenObjects {
            object_bytes: self.head.object_bytes,
            op_bytes: self.head.op_bytes,
            ops: u32::try_from(ops).unwrap_or(u32::MAX),
            pid: self.pid,
        };
        if ops == 0 {
            return self.remove(pool, 0, stop);
        }
        if self.args.no_cleanup {
            return pool.describe(&self.args.run_name, &written);
        }
        if written.objects() > 1000 {
            eprintln!("removing {} objects", written.objects());
        }
        self.remove(pool, written.objects(), stop)
    }

    /// Removes the written objects and the reserved one. The description of an earlier run stays,
    /// as it describes the objects of that run.
    fn remove(&self, pool: &Pool, objects: u64, stop: &StopSignal) -> Result<(), CommandError> {
        let objects = objects.max(u64::from(self.has_reserved));
        let removed = pool.remove_numbered(&self.head.prefix, objects, stop);
        removed.map(|_| ())
    }

    fn print(
        &self,
        seconds: &Seconds,
        result: &RunResult,
        cpu_ns: u64,
        output: Output,
    ) -> Result<(), CommandError> {
        let summary = RadosSummary::new(&self.head, seconds, result, Some(cpu_ns));
        let text = match self.args.format {
            BenchFormat::Plain => summary.text(&self.head),
            BenchFormat::Json => rados::rados_json(&self.head, seconds, &summary, false),
            BenchFormat::JsonPretty => rados::rados_json(&self.head, seconds, &summary, true),
        };
        output.save(&text)
    }
}

/// Errors of a client without write permission.
const REFUSED: [i32; 2] = [Errno::PERM.raw_os_error(), Errno::ACCESS.raw_os_error()];

/// Writes that may have left data. Zero if the cluster refused this client all writes.
fn begun(worker: &WorkerResult) -> u64 {
    let write = &worker.directions.write;
    let refused = |error: &IoFailure| REFUSED.contains(&error.errno);
    match worker.error.as_ref().is_some_and(refused) && write.io_bytes == 0 {
        true => 0,
        false => write.total_ios,
    }
}

/// The exit status, by the interrupt, the error or the damaged reads.
fn conclude(head: &RadosHeader, result: &RunResult, stop: &StopSignal) -> Result<(), CommandError> {
    let worker = result.workers.first();
    let failed = worker.and_then(|worker| match (&worker.error, worker.total_errors) {
        (Some(error), _) => Some(failure_text(head, error)),
        (None, 0) => None,
        (None, damaged) => Some(format!("{damaged} reads differ from the written data")),
    });
    stop.conclude(failed)
}

/// Words of a failed operation, with its object and the options of this command.
fn failure_text(head: &RadosHeader, failure: &IoFailure) -> String {
    let is = |errno: Errno| failure.errno == errno.raw_os_error();
    let remedy = if is(Errno::TIMEDOUT) {
        "the cluster did not answer within --timeout; see `ceph -s` for OSDs that are down or slow"
    } else if is(Errno::NOSPC) || is(Errno::DQUOT) {
        "the pool is full or its quota is exhausted; see `ceph df`"
    } else if is(Errno::NOENT) {
        "another client has removed the object"
    } else {
        return failure.message.clone();
    };
    let Some(offset) = failure.offset else {
        return failure.message.clone();
    };
    let object_bytes = head.object_bytes.max(1);
    format!(
        "{} of {} bytes at offset {} of {} failed with {}: {remedy}",
        failure.operation,
        head.op_bytes,
        offset % object_bytes,
        object_name(&head.prefix, offset / object_bytes),
        errno_name(failure.errno)
    )
}

/// CPU time of the process so far, with that of librados' threads.
fn processor_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

fn current_time_text() -> String {
    jiff::Zoned::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%6f%z")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use iosonde_result::observer::INTERVAL_NS_MAX;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: BenchArgs,
    }

    #[test]
    fn failed_operation_names_its_object() {
        let head = RadosHeader {
            mode: rados::RadosMode::Write,
            concurrent: 1,
            op_bytes: 4096,
            object_bytes: 8192,
            seconds: 1,
            max_objects: 0,
            prefix: "benchmark_data_node1_4711".to_owned(),
        };
        let mut failure = IoFailure {
            errno: Errno::DQUOT.raw_os_error(),
            operation: "write".to_owned(),
            file: Some("rados://p/benchmark_data_node1_4711".to_owned()),
            offset: Some(5 * 4096),
            message: "as the engine says it".to_owned(),
        };
        assert_eq!(
            failure_text(&head, &failure),
            "write of 4096 bytes at offset 4096 of benchmark_data_node1_4711_object2 failed with \
             EDQUOT: the pool is full or its quota is exhausted; see `ceph df`"
        );
        failure.errno = Errno::IO.raw_os_error();
        assert_eq!(failure_text(&head, &failure), failure.message);
    }

    /// The state that a kill before the end leaves.
    #[test]
    fn history_has_whole_minutes_before_benchmark_ends() {
        const SECONDS: usize = 150;
        let directory = std::env::temp_dir().join(format!("iosonde-bench-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (store, lines) = (directory.join("history.db"), directory.join("lines"));
        let seconds = SECONDS.to_string();
        let words = ["bench", &seconds, "rand", "--store"].map(Into::into);
        let words = words.into_iter().chain([store.clone().into_os_string()]);
        let Words { args } = Words::parse_from(words);
        let benchmark = Benchmark {
            args: &args,
            head: RadosHeader {
                mode: args.mode,
                concurrent: 1,
                op_bytes: 4096,
                object_bytes: 4096,
                seconds: args.seconds,
                max_objects: 0,
                prefix: "benchmark_data_node1_4711".to_owned(),
            },
            ops: Some(1000),
            pid: 4711,
            has_reserved: false,
        };
        let mut history_writer = HistoryWriter::open(&args.keep.options()).unwrap();
        let mut output = Output::open(Some(&lines)).unwrap();
        let place = ObjectStorage::Simulated("read_us=20000,capacity=none".to_owned());
        history_writer.begin("rados bench", "rados://pool");
        let stop = StopSignal::listen().unwrap();
        let measured = benchmark.measure(place, &stop, &mut output, &mut history_writer);
        let result = measured.unwrap().outcome.unwrap();
        assert!(result.intervals.len() >= SECONDS);
        history_writer.leave_cut_off();
        let connection = rusqlite::Connection::open(&store).unwrap();
        let reached = "SELECT elapsed_ns FROM run JOIN open_run ON open_run.run = run.id";
        let reached_ns: i64 = connection.query_row(reached, [], |row| row.get(0)).unwrap();
        assert_eq!(reached_ns as u64, 120 * INTERVAL_NS_MAX);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
