//! Header of fio's normal output, printed before the jobs start.

use super::VERSION;
use super::number::Units;
use iosonde_job::plan::{Direction, Job, Plan};
use std::fmt::Write;

/// Returns the jobs with block sizes and engines, the version, and the number of threads. Jobs are
/// always threads, with or without `thread`, so threads are announced.
pub fn header(plan: &Plan) -> String {
    let mut text = String::new();
    for job in &plan.jobs {
        push_job(&mut text, job);
    }
    let threads: u32 = plan.jobs.iter().map(|job| job.numjobs).sum();
    let plural = if threads == 1 { "" } else { "s" };
    push_line(&mut text, format_args!("{VERSION}"));
    push_line(&mut text, format_args!("Starting {threads} thread{plural}"));
    text
}

fn push_job(text: &mut String, job: &Job) {
    let range = |direction: Direction| {
        let size = &job.workload.block_size[direction];
        let bytes = |value| Units::from_options(&job.measure).bytes(value);
        format!("{}-{}", bytes(size.min()), bytes(size.max()))
    };
    let (read, write, trim) = (
        range(Direction::Read),
        range(Direction::Write),
        range(Direction::Trim),
    );
    let sizes = if job.workload.bs_is_seq_rand {
        format!("bs=(R) {read}, (W) {write}, bs_is_seq_rand")
    } else {
        format!("bs=(R) {read}, (W) {write}, (T) {trim}")
    };
    push_line(
        text,
        format_args!(
            "{}: (g={}): rw={}, {sizes}, ioengine={}, iodepth={}",
            job.name,
            job.groupid,
            job.workload.rw.name(),
            job.io.engine.name(),
            job.io.iodepth
        ),
    );
    if job.numjobs > 1 {
        push_line(text, format_args!("..."));
    }
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{BlockSize, Engine, PerDirection, ReadWrite, ReadWriteMode};

    #[test]
    fn header_shows_clones_ranges_and_sequential_sizes() {
        let mut clones = Job::new("x");
        clones.numjobs = 2;
        clones.io.engine = Engine::Null;
        clones.workload.block_size = PerDirection::from_value(BlockSize::Fixed(1 << 20));
        let mut split = Job::new("y");
        split.groupid = 1;
        split.io.iodepth = 4;
        split.workload.rw = ReadWrite {
            mode: ReadWriteMode::ReadWrite,
            random: true,
        };
        split.workload.block_size =
            PerDirection::from_value(BlockSize::Split(vec![(4096, 50), (65_536, 50)]));
        let mut by_order = Job::new("z");
        by_order.workload.bs_is_seq_rand = true;
        by_order.workload.block_size.read = BlockSize::Range {
            min: 1536,
            max: 4096,
        };
        let plan = Plan {
            jobs: vec![clones, split, by_order],
            ..Plan::default()
        };
        assert_eq!(
            header(&plan),
            "\
x: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB, \
    ioengine=null, iodepth=1
...
y: (g=1): rw=randrw, bs=(R) 4096B-64.0KiB, (W) 4096B-64.0KiB, (T) 4096B-64.0KiB, \
    ioengine=psync, iodepth=4
z: (g=0): rw=read, bs=(R) 1536B-4096B, (W) 4096B-4096B, bs_is_seq_rand, ioengine=psync, iodepth=1
fio-3.33
Starting 4 threads
"
        );
    }
}
