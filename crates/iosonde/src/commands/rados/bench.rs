//! `iosonde rados bench`.

use super::args::{AccessArgs, BenchArgs, Written as Format};
use super::measure::{Live, Place, plan};
use super::objects::{Written, prefix};
use super::pool::Pool;
use crate::commands::end;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::rados::{self, Head, Seconds, Summary};
use crate::signals::Stop;
use crate::store::Keeper;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Ceph, ObjectNames};
use iosonde_result::run::{IoFailure, RunResult, WorkerResult};
use iosonde_result::session::{RunError, Session};
use rustix::io::Errno;

/// What is to be done, with all that had to be asked of the pool.
struct Benchmark<'a> {
    args: &'a BenchArgs,
    head: Head,
    /// Operations that there are, where there is an end to them.
    ops: Option<u64>,
    pid: u32,
    /// Whether it has made the first object to have the names of all.
    has_reserved: bool,
}

/// What came of a benchmark.
struct Measured {
    outcome: Result<RunResult, RunError>,
    /// Whether its session could be closed.
    closed: Result<(), RunError>,
    /// What was done in each second.
    seconds: Seconds,
    /// Whether their lines could be written.
    shown: Result<(), Failure>,
}

/// Measures, prints, and removes what it wrote.
pub(super) fn run(args: &BenchArgs, access: &AccessArgs) -> Result<(), Failure> {
    let sizes = args.sizes()?;
    let stop = Stop::listen()?;
    let mut keeper = Keeper::open(&args.keep)?;
    let mut output = Output::open(args.output.as_deref())?;
    let pool = Pool::open(access)?;
    let benchmark = Benchmark::new(args, sizes, &pool)?;
    let place = Place::Pool(Box::new(Ceph {
        access: access.access(),
        pool: access.pool()?.to_owned(),
        namespace: access.namespace.clone(),
        object_bytes: Some(benchmark.head.object_bytes),
        object_names: ObjectNames::RadosBench,
        touch_objects: false,
        ..Ceph::default()
    }));
    let cpu_before_ns = processor_ns();
    keeper.begin("rados bench", pool.target());
    let measured = match benchmark.measure(place, &stop, &mut output, &mut keeper) {
        Ok(measured) => measured,
        Err(failure) => {
            keeper.tell_notes();
            let cleaned = benchmark.remove(&pool, 0, &stop);
            return end([Err(failure), cleaned], Ok(()));
        }
    };
    let Measured {
        mut outcome,
        closed,
        seconds,
        shown,
    } = measured;
    let cpu_ns = processor_ns().saturating_sub(cpu_before_ns);
    let reported = match &mut outcome {
        Ok(result) => {
            keeper.label_run(result);
            let printed = benchmark.print(&seconds, result, cpu_ns, output);
            keeper.keep(result);
            keeper.cut_off(stop.signal().is_some());
            keeper.finish(None);
            printed.and_then(|()| conclude(result, &stop))
        }
        Err(error) => Err(Failure::Run(error.clone())),
    };
    keeper.tell_notes();
    // Removal may take long, and fail: the result is out by then.
    let cleaned = benchmark.leave(&pool, &seconds, outcome.as_ref().ok(), &stop);
    end([shown, reported, cleaned], closed)
}

impl<'a> Benchmark<'a> {
    fn new(args: &'a BenchArgs, sizes: (u64, u64), pool: &Pool) -> Result<Benchmark<'a>, Failure> {
        let last = match args.mode.is_write() && !args.reuse_bench {
            true => None,
            false => pool.written(&args.run_name)?,
        };
        if last.is_none() && !args.mode.is_write() {
            return Err(Failure::usage(
                format!(
                    "{}: there is nothing to read: no benchmark has left {}",
                    pool.target(),
                    args.run_name
                ),
                "write first: iosonde rados bench -p POOL SECONDS write --no-cleanup",
            ));
        }
        let host = host();
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
            head: Head {
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

    /// Runs it, with a line each second where the result is for people. Where it fails, nothing was written.
    fn measure(
        &self,
        place: Place,
        stop: &Stop,
        output: &mut Output,
        keeper: &mut Keeper,
    ) -> Result<Measured, Failure> {
        let mut plan = plan(&self.head, self.ops, !self.args.no_verify, place)?;
        plan.count_stops();
        let mut session = LocalRunner {
            interrupt: stop.interrupt.clone(),
            keep_files: true,
            ..LocalRunner::default()
        }
        .open();
        let lines = match self.args.format {
            Format::Plain => {
                output.stream()?;
                Some(output)
            }
            Format::Json | Format::JsonPretty => None,
        };
        let mut live = Live::new(&self.head, self.ops, lines, self.args.show_time, now);
        let outcome = keeper.run(&mut session, &plan, &mut live);
        let closed = Box::new(session).close();
        let (seconds, shown) = live.end(outcome.as_ref().ok());
        Ok(Measured {
            outcome,
            closed,
            seconds,
            shown,
        })
    }

    /// Describes what was written for those who will read it, or removes it.
    fn leave(
        &self,
        pool: &Pool,
        seconds: &Seconds,
        result: Option<&RunResult>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        if !self.head.mode.is_write() {
            return Ok(());
        }
        // Of a run without a result it is only known what was over at its last second; more than is in flight beyond that
        // cannot have been begun since.
        let begun = result.map(|result| result.workers.first().map_or(0, begun));
        let ops = begun.unwrap_or_else(|| seconds.started());
        let written = Written {
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

    /// Removes the objects that were written, and the one that was made before. An earlier run's description stays: it tells what that
    /// has left.
    fn remove(&self, pool: &Pool, objects: u64, stop: &Stop) -> Result<(), Failure> {
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
    ) -> Result<(), Failure> {
        let summary = Summary::new(&self.head, seconds, result, Some(cpu_ns));
        let text = match self.args.format {
            Format::Plain => summary.text(&self.head),
            Format::Json => rados::json(&self.head, seconds, &summary, false),
            Format::JsonPretty => rados::json(&self.head, seconds, &summary, true),
        };
        output.save(&text)
    }
}

/// What errors of a client that may not write are.
const REFUSED: [i32; 2] = [Errno::PERM.raw_os_error(), Errno::ACCESS.raw_os_error()];

/// Writes that may have left something: none, where the cluster has refused to let this client write at all.
fn begun(worker: &WorkerResult) -> u64 {
    let write = &worker.directions.write;
    let refused = |error: &IoFailure| REFUSED.contains(&error.errno);
    match worker.error.as_ref().is_some_and(refused) && write.io_bytes == 0 {
        true => 0,
        false => write.total_ios,
    }
}

/// The exit status, from what happened.
fn conclude(result: &RunResult, stop: &Stop) -> Result<(), Failure> {
    let worker = result.workers.first();
    let failed = worker.and_then(|worker| match (&worker.error, worker.total_errors) {
        (Some(error), _) => Some(error.message.clone()),
        (None, 0) => None,
        (None, damaged) => Some(format!("{damaged} reads were not what was written")),
    });
    stop.conclude(failed)
}

/// This machine's name, which is part of the names of objects.
pub(super) fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    host.map_or_else(|_| "unknown".to_owned(), |host| host.trim().to_owned())
}

/// Processor time of the whole program so far: librados works on threads of its own.
fn processor_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

fn now() -> String {
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

    /// As a kill before the end leaves it.
    #[test]
    fn history_has_whole_minutes_before_the_benchmark_has_ended() {
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
            head: Head {
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
        let mut keeper = Keeper::open(&args.keep).unwrap();
        let mut output = Output::open(Some(&lines)).unwrap();
        let place = Place::Simulated("read_us=20000,capacity=none".to_owned());
        keeper.begin("rados bench", "rados://pool");
        let stop = Stop::listen().unwrap();
        let measured = benchmark.measure(place, &stop, &mut output, &mut keeper);
        let result = measured.unwrap().outcome.unwrap();
        assert!(result.intervals.len() >= SECONDS);
        keeper.leave_cut_off();
        let connection = rusqlite::Connection::open(&store).unwrap();
        let reached = "SELECT elapsed_ns FROM run JOIN open_run ON open_run.run = run.id";
        let reached_ns: i64 = connection.query_row(reached, [], |row| row.get(0)).unwrap();
        assert_eq!(reached_ns as u64, 120 * INTERVAL_NS_MAX);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
