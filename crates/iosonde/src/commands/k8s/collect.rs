//! `iosonde k8s collect`: the results of rendered manifests.

use super::collected_documents::report_documents;
use crate::args::CollectArgs;
use crate::commands::fio::{conclude, report};
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::{CollectedOutput, SetupEvent, SetupObserver, collect};
use iosonde_history::HistoryWriter;
use std::time::Duration;

pub(super) fn run(args: &CollectArgs) -> Result<(), CommandError> {
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.output.as_deref())?;
    let mut pod_live = PodLive::new(args.run.as_deref().unwrap_or("rendered run"));
    let watch = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| pod_live.show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    let mut options = args.cluster.options();
    if let Some(ns) = args.timeout {
        options.timeout = Duration::from_nanos(ns);
    }
    let collected = match collect(&options, args.run.as_deref(), watch)? {
        CollectedOutput::Job(collected) => collected,
        CollectedOutput::Documents(documents) => {
            return report_documents(&documents, args, output);
        }
    };
    for note in &collected.notes {
        eprintln!("note: {note}");
    }
    history_writer.cut_off(collected.cut.is_some());
    let mut result = collected.result;
    report(
        &mut result,
        &collected.target,
        args.output_format,
        &mut history_writer,
        output,
    )?;
    // An error of one pod's job makes the cluster stop the others, so it is reported first.
    conclude(&result, &stop)?;
    collected.cut.map_or(Ok(()), |cut| Err(cut.into()))
}
