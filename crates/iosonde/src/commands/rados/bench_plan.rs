//! The benchmark as a plan of one job, and the rows of its table.

use crate::commands::bench_table::TableRows;
use crate::failure::CommandError;
use iosonde_job::Plan;
use iosonde_job::parse;
use iosonde_job::plan::{BufferFill, Ceph, Verify, VerifyMethod};
use iosonde_machine::system_env::SystemEnv;
use iosonde_report::rados::{RadosHeader, RadosMode, Seconds};
use iosonde_result::interval::Interval;
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
pub(super) fn plan_rados_bench(
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

/// The table of `rados bench`.
pub(super) struct RadosRows<'a> {
    head: &'a RadosHeader,
    /// The seconds so far.
    pub(super) seconds: Seconds,
    show_time: bool,
    now: fn() -> String,
}

impl<'a> RadosRows<'a> {
    /// Creates the table. `now` returns the current time as text.
    pub(super) fn new(
        head: &'a RadosHeader,
        ops: Option<u64>,
        show_time: bool,
        now: fn() -> String,
    ) -> RadosRows<'a> {
        RadosRows {
            head,
            seconds: Seconds::new(head, ops),
            show_time,
            now,
        }
    }

    fn line(&self) -> String {
        self.seconds.line(&(self.now)(), self.show_time)
    }
}

impl TableRows for RadosRows<'_> {
    /// As in `rados bench`, a row of the start follows the heading.
    fn heading(&mut self) -> String {
        self.head.text() + &self.line()
    }

    fn push(&mut self, interval: &Interval) -> Option<String> {
        self.seconds.push(interval).then(|| self.line())
    }
}
