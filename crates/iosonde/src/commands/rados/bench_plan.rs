//! The benchmark as a plan of one job, and its live output.

use crate::failure::CommandError;
use crate::output::Output;
use iosonde_job::Plan;
use iosonde_job::parse;
use iosonde_job::plan::{BufferFill, Ceph, Verify, VerifyMethod};
use iosonde_machine::system_env::SystemEnv;
use iosonde_report::rados::{RadosHeader, RadosMode, Seconds};
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, INTERVAL_NS_MAX, Observer, RunProgress};
use iosonde_result::run::RunResult;
use std::ffi::OsString;

/// Bytes of a write without a limit on objects: more than any pool holds.
const NO_END: u64 = 1 << 60;

/// The storage of the objects.
pub(super) enum ObjectStorage {
    /// A pool.
    Pool(Box<Ceph>),
    /// A simulated device, for tests.
    #[cfg(test)]
    Simulated(String),
}

/// One job over the concatenation of all objects. `ops` is the number of operations, which limits
/// reads, and writes with a limit on objects.
pub(super) fn plan(
    head: &RadosHeader,
    ops: Option<u64>,
    verify: bool,
    place: ObjectStorage,
) -> Result<Plan, CommandError> {
    let mut words = vec![
        "--name=rados_bench".to_owned(),
        format!("--bs={}", head.op_bytes),
        format!("--iodepth={}", head.concurrent),
        format!("--size={}", ops.map_or(NO_END, |ops| ops * head.op_bytes)),
        "--lat_percentiles=1".to_owned(),
        "--clat_percentiles=0".to_owned(),
        format!("--filename={}", head.prefix),
    ];
    words.extend(match head.mode {
        RadosMode::Write => vec!["--rw=write".to_owned()],
        RadosMode::Seq => vec!["--rw=read".to_owned()],
        RadosMode::Rand => ["--rw=randread", "--norandommap", "--time_based"]
            .map(str::to_owned)
            .to_vec(),
    });
    if head.seconds > 0 {
        words.push(format!("--runtime={}s", head.seconds));
    }
    let ceph = match place {
        ObjectStorage::Pool(ceph) => {
            words.push(format!("--pool={}", ceph.pool));
            words.push("--ioengine=rados".to_owned());
            Some(*ceph)
        }
        #[cfg(test)]
        ObjectStorage::Simulated(device) => {
            words.push("--ioengine=sim".to_owned());
            words.push(format!("--sim={device}"));
            None
        }
    };
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let parsed =
        parse(&words, &SystemEnv::default()).map_err(|all| CommandError::Jobs(Box::new(all)))?;
    let mut plan = parsed.plan;
    for job in &mut plan.jobs {
        job.workload.buffers.fill = BufferFill::RadosBench;
        if verify && !head.mode.is_write() {
            job.verify = Some(Verify::new(VerifyMethod::RadosBench));
            // All damaged reads are counted.
            job.errors.continue_verify = true;
        }
        if ceph.is_some() {
            job.io.ceph = ceph.clone().map(Box::new);
        }
    }
    Ok(plan)
}

/// Prints a line each second, or only collects the seconds.
pub(super) struct Live<'a> {
    head: &'a RadosHeader,
    /// The seconds so far.
    pub(super) seconds: Seconds,
    /// Destination of lines. `None`: all is printed at the end.
    lines: Option<&'a mut Output>,
    show_time: bool,
    now: fn() -> String,
    begun: bool,
    /// Intervals so far.
    seen: usize,
    failed: Option<CommandError>,
}

impl<'a> Live<'a> {
    /// `lines`: destination of the lines, if they are printed live.
    pub(super) fn new(
        head: &'a RadosHeader,
        ops: Option<u64>,
        lines: Option<&'a mut Output>,
        show_time: bool,
        now: fn() -> String,
    ) -> Live<'a> {
        Live {
            head,
            seconds: Seconds::new(head, ops),
            lines,
            show_time,
            now,
            begun: false,
            seen: 0,
            failed: None,
        }
    }

    /// The seconds, and whether they could be written. The result has the last second.
    pub(super) fn finish(
        mut self,
        result: Option<&RunResult>,
    ) -> (Seconds, Result<(), CommandError>) {
        let all = result.into_iter().flat_map(|result| &result.intervals);
        for interval in all.skip(self.seen) {
            self.interval(&interval);
        }
        (self.seconds, self.failed.map_or(Ok(()), Err))
    }

    /// Prints the head of the table before the first line.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let text = self.head.text();
            self.print(&text);
            self.print_second();
        }
    }

    fn print_second(&mut self) {
        let line = self.seconds.line(&(self.now)(), self.show_time);
        self.print(&line);
    }

    fn print(&mut self, text: &str) {
        if let Some(Err(failure)) = self.lines.as_mut().map(|out| out.write(text)) {
            self.failed.get_or_insert(failure);
        }
    }
}

impl Observer for Live<'_> {
    /// A line for each second, as `rados bench` prints.
    fn interval_ns(&self, _plan: &Plan) -> u64 {
        INTERVAL_NS_MAX
    }

    fn progress(&mut self, _: &RunProgress<'_>) -> Control {
        self.begin();
        Control::Continue
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.begin();
        self.seen += 1;
        if self.seconds.push(interval) {
            self.print_second();
        }
        Control::Continue
    }
}
