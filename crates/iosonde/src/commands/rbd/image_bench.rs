//! `iosonde rbd bench`.

use super::image_bench_plan::{ImageRows, ImageStorage, plan_image_bench};
use crate::args::{AccessArgs, BenchFormat, ImageBenchArgs};
use crate::commands::bench_table::BenchTable;
use crate::commands::ceph::remote_storage;
use crate::commands::finish_command;
use crate::failure::CommandError;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_engine::runner::LocalRunner;
use iosonde_history::HistoryWriter;
use iosonde_job::plan::{Ceph, CephAccess, Engine, Job};
use iosonde_report::rbd::{self, ImageBenchHeader, ImageBenchSummary, ImageSeconds};
use iosonde_result::run::RunResult;
use iosonde_result::session::Session;

/// Measures, and prints the table and the summary.
pub(super) fn run(args: &ImageBenchArgs, access: &AccessArgs) -> Result<(), CommandError> {
    let ceph = args.image(access)?;
    let head = args.header();
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let mut output = Output::open_report(args.output.as_deref())?;
    let image_bytes = image_bytes(&ceph)?;
    let target = target(&ceph);
    let storage = ImageStorage::Image(Box::new(ceph));
    let mut plan = plan_image_bench(&head, image_bytes, storage)?;
    plan.count_stops();
    let mut session = LocalRunner {
        consent: args.consent.noted(),
        interrupt: stop.interrupt.clone(),
        remote: remote_storage(CephAccess::default()),
        ..LocalRunner::default()
    }
    .open();
    let cpu_before_ns = processor_ns();
    history_writer.begin("rbd bench", &target);
    let lines = match args.format {
        BenchFormat::Plain => {
            output.stream()?;
            Some(&mut output)
        }
        BenchFormat::Json | BenchFormat::JsonPretty => None,
    };
    let mut live = BenchTable::new(ImageRows::new(&head), lines);
    let outcome = history_writer.run(&mut session, &plan, &mut live);
    let (ImageRows { seconds, .. }, shown) = live.finish(outcome.as_ref().ok());
    let cpu_ns = processor_ns().saturating_sub(cpu_before_ns);
    let reported = match outcome {
        Ok(mut result) => {
            history_writer.label_run(&mut result);
            let text = image_bench_text(args.format, &head, &seconds, &result, cpu_ns);
            let printed = output.save(&text);
            history_writer.store_run(&result);
            history_writer.cut_off(stop.signal().is_some());
            history_writer.finish(None);
            printed.and_then(|()| conclude(&result, &stop))
        }
        Err(error) => Err(CommandError::Run(error)),
    };
    crate::commands::print_notes(&mut history_writer);
    // Closing an image may take long, so the result is printed before.
    let closed = Box::new(session).close();
    finish_command([shown, reported], closed)
}

/// Length of the image.
fn image_bytes(ceph: &Ceph) -> Result<u64, CommandError> {
    let mut job = Job::new("rbd_bench");
    job.io.engine = Engine::Rbd;
    job.io.ceph = Some(Box::new(ceph.clone()));
    match remote_storage(CephAccess::default()) {
        Some(remote) => remote.image_bytes(&job).map_err(CommandError::Run),
        None => Ok(0),
    }
}

/// The image as a target URI.
fn target(ceph: &Ceph) -> String {
    let parts = [
        Some(ceph.pool.as_str()),
        ceph.namespace.as_deref(),
        ceph.image.as_deref(),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    format!("rbd://{}", parts.join("/"))
}

fn image_bench_text(
    format: BenchFormat,
    head: &ImageBenchHeader,
    seconds: &ImageSeconds,
    result: &RunResult,
    cpu_ns: u64,
) -> String {
    let summary = ImageBenchSummary::new(seconds, result, Some(cpu_ns));
    match format {
        BenchFormat::Plain => summary.text(head),
        BenchFormat::Json => rbd::image_bench_json(head, seconds, &summary, false),
        BenchFormat::JsonPretty => rbd::image_bench_json(head, seconds, &summary, true),
    }
}

/// The exit status, by the interrupt or the first error.
fn conclude(result: &RunResult, stop: &StopSignal) -> Result<(), CommandError> {
    let mut errors = result.workers.iter().filter_map(|it| it.error.as_ref());
    stop.conclude(errors.next().map(|error| error.message.clone()))
}

/// CPU time of the process so far, with that of librbd's threads.
fn processor_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}
