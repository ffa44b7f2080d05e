//! Tests of the runtime of a direction, by which its rates are divided, on simulated devices.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::*;
use iosonde_result::run::DirectionStats;
use iosonde_result::session::Session;

const MS: u64 = 1_000_000;

/// Reads of 100 us and writes of 200 us, one at a time.
fn job(mode: ReadWriteMode, ios: u64) -> Job {
    let mut job = Job::new("sim");
    job.io.engine = Engine::Sim;
    job.io.sim = Some("read_us=100,write_us=200,read_dist=fixed,write_dist=fixed".to_owned());
    job.io.iodepth = 1;
    job.io.direct = true;
    job.files.size = Some(BytesOrPercent::Bytes(ios * 4096));
    job.workload.rw = ReadWrite { mode, random: true };
    job.workload.percentage_random = PerDirection::from_value(100);
    job
}

fn run(job: Job) -> PerDirection<DirectionStats> {
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    let mut session = LocalRunner::default().open();
    let mut result = session.run(&plan, &mut ()).unwrap();
    result.workers.remove(0).directions
}

/// Runtime of a direction in milliseconds, rounded up.
fn runtime_ms(stats: &DirectionStats) -> u64 {
    stats.runtime_ns.div_ceil(MS)
}

#[test]
fn unmeasured_latencies_do_not_stop_the_clock() {
    let mut job = job(ReadWriteMode::Read, 1000);
    (job.measure.lat, job.measure.clat, job.measure.slat) = (false, false, false);
    assert_eq!(runtime_ms(&run(job).read), 100);
}

#[test]
fn runtime_includes_waits_of_a_rate_limit() {
    let mut job = job(ReadWriteMode::Read, 1000);
    job.schedule.rate_iops.read = Some(2);
    job.schedule.time_based = true;
    job.schedule.runtime_ns = 2_000 * MS;
    let read = run(job).read;
    assert_eq!((read.total_ios, runtime_ms(&read)), (4, 2_000));
}

#[test]
fn mix_gives_both_directions_the_same_runtime() {
    let mut job = job(ReadWriteMode::ReadWrite, 1000);
    job.schedule.rate_iops = PerDirection {
        read: Some(200),
        write: Some(2),
        trim: None,
    };
    job.schedule.time_based = true;
    job.schedule.runtime_ns = 2_000 * MS;
    let stats = run(job);
    assert_eq!(
        (runtime_ms(&stats.read), runtime_ms(&stats.write)),
        (2_000, 2_000)
    );
}

/// A rate limit delays its own direction only.
#[test]
fn rate_of_one_direction_leaves_the_other_unlimited() {
    for slow in [Direction::Read, Direction::Write] {
        let mut job = job(ReadWriteMode::ReadWrite, 1000);
        job.schedule.rate_iops[slow] = Some(100);
        job.schedule.time_based = true;
        job.schedule.runtime_ns = 2_000 * MS;
        let stats = run(job);
        let fast = match slow {
            Direction::Read => &stats.write,
            _ => &stats.read,
        };
        assert_eq!(stats[slow].total_ios, 200, "{slow:?}");
        assert!(fast.total_ios > 9_000, "{slow:?}: {}", fast.total_ios);
    }
}
