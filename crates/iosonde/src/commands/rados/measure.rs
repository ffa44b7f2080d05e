//! The benchmark as a plan of one job, and what is shown while it runs.

use crate::failure::Failure;
use crate::output::Output;
use crate::report::rados::{Head, Mode, Seconds};
use iosonde_job::Plan;
use iosonde_job::parse;
use iosonde_job::plan::{BufferFill, Ceph, Verify, VerifyMethod};
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, INTERVAL_NS_MAX, Observer, Progress};
use iosonde_result::run::RunResult;
use std::ffi::OsString;

/// Bytes of a write that ends with its time: more than any pool holds.
const NO_END: u64 = 1 << 60;

/// Where the objects are.
pub(super) enum Place {
    /// A pool.
    Pool(Box<Ceph>),
    /// A simulated device, for tests.
    #[cfg(test)]
    Simulated(String),
}

/// One job over all objects, put one after the other. `ops` is how many there are: an end for reads, and for writes of at
/// most so many objects.
pub(super) fn plan(
    head: &Head,
    ops: Option<u64>,
    verify: bool,
    place: Place,
) -> Result<Plan, Failure> {
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
        Mode::Write => vec!["--rw=write".to_owned()],
        Mode::Seq => vec!["--rw=read".to_owned()],
        Mode::Rand => ["--rw=randread", "--norandommap", "--time_based"]
            .map(str::to_owned)
            .to_vec(),
    });
    if head.seconds > 0 {
        words.push(format!("--runtime={}s", head.seconds));
    }
    let ceph = match place {
        Place::Pool(ceph) => {
            words.push(format!("--pool={}", ceph.pool));
            words.push("--ioengine=rados".to_owned());
            Some(*ceph)
        }
        #[cfg(test)]
        Place::Simulated(device) => {
            words.push("--ioengine=sim".to_owned());
            words.push(format!("--sim={device}"));
            None
        }
    };
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let parsed =
        parse(&words, &SystemEnv::default()).map_err(|all| Failure::Jobs(Box::new(all)))?;
    let mut plan = parsed.plan;
    for job in &mut plan.jobs {
        job.workload.buffers.fill = BufferFill::RadosBench;
        if verify && !head.mode.is_write() {
            job.verify = Some(Verify::new(VerifyMethod::RadosBench));
            // All that is damaged is counted.
            job.errors.continue_verify = true;
        }
        if ceph.is_some() {
            job.io.ceph = ceph.clone().map(Box::new);
        }
    }
    Ok(plan)
}

/// Prints a line each second, or keeps them for the end.
pub(super) struct Live<'a> {
    head: &'a Head,
    /// What was seen.
    pub(super) seconds: Seconds,
    /// Where lines go; `None` where all is printed at the end.
    lines: Option<&'a mut Output>,
    show_time: bool,
    now: fn() -> String,
    begun: bool,
    /// Intervals so far.
    seen: usize,
    failed: Option<Failure>,
}

impl<'a> Live<'a> {
    /// Lines go to `lines`, where it is given.
    pub(super) fn new(
        head: &'a Head,
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

    /// What was seen, and whether it could be written. The last second is known when the run is over.
    pub(super) fn end(mut self, result: Option<&RunResult>) -> (Seconds, Result<(), Failure>) {
        let all = result.into_iter().flat_map(|result| &result.intervals);
        for interval in all.skip(self.seen) {
            self.interval(&interval);
        }
        (self.seconds, self.failed.map_or(Ok(()), Err))
    }

    /// Says what is done, once it really is.
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
    /// A line for each second, as `rados bench` has.
    fn interval_ns(&self, _plan: &Plan) -> u64 {
        INTERVAL_NS_MAX
    }

    fn progress(&mut self, _: &Progress<'_>) -> Control {
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
