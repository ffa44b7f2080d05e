//! What fio's normal output says before the jobs start.

use super::VERSION;
use super::number::Units;
use iosonde_job::plan::{Direction, Job, Plan};
use std::fmt::Write;

/// The jobs with their block sizes and engines, the version, and how many threads start; ends with a line break. Jobs are
/// always threads, so that is what is announced, with or without `thread`.
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
        let bytes = |value| Units::of(&job.measure).bytes(value);
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
