//! `iosonde watch`: rates of disks, processors, network and NFS, as sar and iostat show them.

mod sample_display;
mod sample_json;
mod sample_source;
mod section_tables;
mod watch_columns;
mod watch_options;
mod watch_record;
mod watch_request;
mod watch_sample;

use crate::args::{WatchArgs, WatchFormat, WatchSection};
use crate::commands::embedded_agents::agents;
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::output::{Output, is_reader_gone};
use crate::signals::StopSignal;
use iosonde_cluster::{ClusterOptions, ClusterRunner, SetupEvent, SetupObserver};
use iosonde_engine::runner::check_build;
use sample_display::Show;
use sample_source::{LocalSource, NodeSource, SampleSource};
use section_tables::missing_reason;
use std::path::Path;
use std::time::{Duration, Instant};
use watch_options::{choose_view, refuse_unfit_words};
use watch_record::{RecordReader, RecordWriter};
use watch_request::{WatchRequest, parse_request};
use watch_sample::WatchSample;

/// Prints the rates of devices until the count or an interrupt, then the averages.
pub(crate) fn run(args: &WatchArgs) -> Result<(), CommandError> {
    let wanted = parse_request(&args.words)?;
    refuse_unfit_words(args, &wanted)?;
    let view = choose_view(args, wanted.devices.is_empty())?;
    let mut show = Show::new(view);
    if let Some(path) = &args.replay {
        return replay(path, &wanted, &mut show);
    }
    let stop = StopSignal::listen()?;
    match wanted.nodes.is_empty() {
        true => {
            check_build()?;
            let mut source = LocalSource::begin(&wanted.devices)?;
            watch_source(&mut source, args, &wanted, &mut show, &stop)
        }
        false => watch_nodes(args, &wanted, &mut show, &stop),
    }
}

/// Watches nodes of a cluster, each by a pod that is removed at the end.
fn watch_nodes(
    args: &WatchArgs,
    wanted: &WatchRequest,
    show: &mut Show,
    stop: &StopSignal,
) -> Result<(), CommandError> {
    let mut pod_live = PodLive::new("watch");
    let observer = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| pod_live.show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    let agents = agents()?;
    let runner = ClusterRunner {
        options: ClusterOptions {
            image: args.image.clone(),
            watch_nodes: Some(wanted.nodes.clone()),
            ..args.cluster.options()
        },
        agents: &agents,
    };
    let session = runner.open_nodes(observer)?;
    let mut source = NodeSource::new(session, &wanted.devices);
    watch_source(&mut source, args, wanted, show, stop)
}

/// Prints, and records on request, each sample of a source, then the averages.
fn watch_source(
    source: &mut dyn SampleSource,
    args: &WatchArgs,
    wanted: &WatchRequest,
    show: &mut Show,
    stop: &StopSignal,
) -> Result<(), CommandError> {
    let mut output = Output::Standard;
    let record = args.record.as_deref().map(RecordWriter::open);
    let mut record = record.transpose()?;
    let mut average = WatchSample::default();
    let mut ended = Ok(());
    let begun = Instant::now();
    let mut done = 0;
    while wanted.count.is_none_or(|count| done < count) {
        let next = begun + wanted.interval * u32::try_from(done + 1).unwrap_or(u32::MAX);
        if !sleep_until(next, stop) {
            break;
        }
        let sample = match source.sample() {
            Ok(sample) => sample,
            Err(error) => {
                ended = Err(error);
                break;
            }
        };
        if done == 0 {
            note_missing_sections(args, &sample);
        }
        if let Some(record) = &mut record {
            record.write_sample(&sample)?;
        }
        output.write(&show.sample(&sample))?;
        average.add(&sample);
        done += 1;
        // A recording goes on without a reader of the table.
        if is_reader_gone() && record.is_none() {
            return Ok(());
        }
    }
    if done > 0 {
        output.write(&show.average(&average))?;
    }
    ended?;
    // Without a count, Ctrl-C is the regular end.
    match stop.signal() {
        Some(signal) if wanted.count.is_some() || signal != signal_hook::consts::SIGINT => {
            Err(CommandError::Interrupted(signal))
        }
        _ => Ok(()),
    }
}

/// Prints the intervals of a recording, then the averages.
fn replay(path: &Path, wanted: &WatchRequest, show: &mut Show) -> Result<(), CommandError> {
    let mut records = RecordReader::open(path)?;
    let mut output = Output::Standard;
    let mut average = WatchSample::default();
    while let Some(mut sample) = records.next_sample()? {
        if !wanted.nodes.is_empty() {
            sample.machines.retain(|machine| {
                let node = machine.node.as_ref();
                node.is_some_and(|node| wanted.nodes.contains(node))
            });
        }
        sample.keep_devices(&wanted.devices);
        output.write(&show.sample(&sample))?;
        average.add(&sample);
        if is_reader_gone() {
            return Ok(());
        }
    }
    if records.is_cut_off() {
        eprintln!("note: the last line of {} was cut off", path.display());
    }
    if average.machines.is_empty() {
        eprintln!(
            "note: {} has no interval that the options select",
            path.display()
        );
        return Ok(());
    }
    let has_devices = average.machines.iter().any(|one| !one.devices.is_empty());
    if !wanted.devices.is_empty() && !has_devices {
        return Err(CommandError::usage(
            format!(
                "{} has no device {}",
                path.display(),
                wanted.devices.join(" ")
            ),
            "leave out the device to see all that were recorded",
        ));
    }
    output.write(&show.average(&average))
}

/// Notes which sections that the user asks for have no figures here.
fn note_missing_sections(args: &WatchArgs, sample: &WatchSample) {
    let asked_for: &[WatchSection] = match args.format {
        WatchFormat::Table => &args.show,
        // JSON has null.
        WatchFormat::Json | WatchFormat::Csv => &[],
    };
    for section in asked_for {
        if let Some(reason) = missing_reason(*section, sample) {
            eprintln!("note: {reason}");
        }
    }
}

/// Sleeps until `next`. `false` if a signal arrives before.
fn sleep_until(next: Instant, stop: &StopSignal) -> bool {
    loop {
        if stop.signal().is_some() {
            return false;
        }
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}
