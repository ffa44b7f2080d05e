//! `iosonde k8s lifecycle`: how long each stage in the life of a volume takes.

use crate::args::LifecycleArgs;
use crate::commands::cluster::{archs, one_cluster};
use crate::commands::target_session::refuse_unused_medium;
use crate::commands::unused_cluster_options::{refuse_keep_of_volumes, refuse_watched_nodes};
use crate::commands::{discard, finish_command, keep_study};
use crate::failure::CommandError;
use crate::live::pod_setup::PodLive;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::image::carries_agent;
use iosonde_cluster::{ClusterOptions, LifecycleSession, SetupEvent, SetupObserver};
use iosonde_history::HistoryWriter;
use iosonde_job::TargetUri;
use iosonde_report as report;
use iosonde_report::format::TextFormat;
use iosonde_result::volume_lifecycle::LifecycleRound;
use iosonde_study::lifecycle::{LifecycleOptions, LifecycleResult, run_lifecycle};
use iosonde_study::words;

/// Measures the classes, prints the result and removes everything.
pub(super) fn run(args: &LifecycleArgs) -> Result<(), CommandError> {
    one_cluster(&args.cluster)?;
    refuse_unused_medium(&args.classes, &args.cluster)?;
    refuse_watched_nodes(&args.cluster, "k8s lifecycle")?;
    refuse_keep_of_volumes(&args.cluster)?;
    let classes = prepare_classes(args)?;
    let options = LifecycleOptions {
        counts: distinct_counts(&args.counts),
        rounds: args.rounds,
        claim_bytes: classes[0].1.claim_bytes,
    };
    let stop = StopSignal::listen()?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    let output = Output::open_report(args.output.as_deref())?;
    let most = options.counts.iter().copied().max().unwrap_or(1);
    let mut pod_live = PodLive::new("lifecycle");
    let observer = SetupObserver {
        tell: &mut |event: SetupEvent<'_>| pod_live.show_event(event),
        interrupts: &|| stop.interrupt.count(),
    };
    let names: Vec<&str> = classes.iter().map(|(name, _)| name.as_str()).collect();
    eprintln!("{}", announcement(&names, &options, most));
    let mut session = LifecycleSession::open(classes, most, &archs(), observer)?;
    for (key, value) in session.labels() {
        history_writer.label(key, value);
    }
    history_writer.begin("lifecycle", &args.classes.join(", "));
    let known = session.classes();
    let mut measure = |round: &LifecycleRound| session.measure_round(round);
    let outcome = run_lifecycle(known, &options, &mut measure);
    let result = match outcome {
        Ok(result) => result,
        Err(error) => {
            discard(&mut history_writer);
            if let Err(left) = session.close() {
                CommandError::from(left).warn();
            }
            return Err(error.into());
        }
    };
    if !result.volumes.is_empty() {
        history_writer.store_without_runs();
    }
    let kept = keep_study(&mut history_writer, &result);
    let written = print(args, &result, output);
    let concluded = stop.conclude_study(result.error.clone(), result.failure());
    // Removal may be slow or fail, so it comes last.
    let closed = session.close();
    finish_command([written, kept, concluded], closed)
}

/// Parses the classes, with the options of their volumes.
fn prepare_classes(args: &LifecycleArgs) -> Result<Vec<(String, ClusterOptions)>, CommandError> {
    if let Some(image) = args
        .cluster
        .image
        .as_ref()
        .filter(|image| carries_agent(image))
    {
        return Err(CommandError::usage(
            format!("the image {image} has no shell, which writes the first block"),
            "name an image with sh and dd, e.g. busybox",
        ));
    }
    let mut classes: Vec<(String, ClusterOptions)> = Vec::new();
    for name in &args.classes {
        let target: Option<TargetUri> = crate::commands::cluster::target(name)?;
        let Some(target @ TargetUri::StorageClass(_)) = target else {
            return Err(CommandError::usage(
                format!("{name} is not a storage class"),
                "name a storage class as sc://CLASS: its volumes are created and removed",
            ));
        };
        if classes.iter().any(|(known, _)| known == name) {
            return Err(CommandError::usage(
                format!("{name} is named twice"),
                "name each class once; --rounds sets how often it is measured",
            ));
        }
        classes.push((name.clone(), args.cluster.options(target)));
    }
    Ok(classes)
}

/// Returns the counts in ascending order, each once: a group is compared with smaller ones.
fn distinct_counts(counts: &[u32]) -> Vec<u32> {
    let mut counts = counts.to_vec();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Describes what will be created.
fn announcement(classes: &[&str], options: &LifecycleOptions, most: u32) -> String {
    let volumes = usize::try_from(options.volume_count(classes.len())).unwrap_or(usize::MAX);
    format!(
        "{}: creates and removes {} of {}, at most {most} at the same time; Ctrl-C stops early \
         and prints the results so far",
        classes.join(", "),
        words::counted(volumes, "volume"),
        words::bytes(options.claim_bytes)
    )
}

fn print(
    args: &LifecycleArgs,
    result: &LifecycleResult,
    output: Output,
) -> Result<(), CommandError> {
    let text = match args.format {
        TextFormat::Table => report::lifecycle::table(result),
        TextFormat::Json => report::lifecycle::lifecycle_json(result)?,
        TextFormat::Csv => report::lifecycle::lifecycle_csv(result),
        TextFormat::Markdown => report::lifecycle::markdown(result),
    };
    output.save(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_ascending_and_distinct() {
        assert_eq!(distinct_counts(&[10, 1, 10, 100]), [1, 10, 100]);
    }

    #[test]
    fn announcement_counts_the_volumes_of_all_classes() {
        let options = LifecycleOptions {
            counts: vec![1, 10],
            rounds: Some(2),
            claim_bytes: 1 << 30,
        };
        let text = announcement(&["sc://a", "sc://b"], &options, 10);
        assert!(
            text.starts_with(
                "sc://a, sc://b: creates and removes 44 volumes of 1 GiB, at most 10 at"
            ),
            "{text}"
        );
    }
}
