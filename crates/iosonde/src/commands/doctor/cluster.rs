//! `iosonde doctor --cluster`: what a Kubernetes cluster has to measure, what would spoil it, and what runs have left.

use super::{DoctorArgs, DoctorFormat, count_findings};
use crate::args::ClusterArgs;
use crate::commands::cluster;
use crate::failure::Failure;
use crate::live::cluster::PodLive;
use crate::output::Output;
use crate::report;
use crate::signals::Stop;
use iosonde_cluster::survey::{Survey, Trial, survey};
use iosonde_cluster::{Told, Watch, leftovers};
use iosonde_job::Target;
use iosonde_result::session::{RunError, Session};
use iosonde_result::wire::Place;
use std::time::Instant;

/// Size of the claim of a trial: some drivers make none that is smaller.
const TRIAL_BYTES: u64 = 1 << 30;
/// How long a trial may take.
const TRIAL_NS: u64 = 60_000_000_000;

pub(super) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    cluster::one_cluster(&args.place)?;
    let output = Output::open(args.output.as_deref())?;
    // The target of these options is not used.
    let options = args.place.options(Target::EmptyDir);
    let mut found = survey(&options)?;
    let mut held = None;
    if args.clean {
        let (runs, volumes) = (&found.leftovers, &found.lost_volumes);
        let removed = leftovers::remove(&options, runs, volumes, &found.lost_namespaces);
        if let Ok(namespaces) = removed {
            let (runs, volumes) = (runs.len(), volumes.len());
            eprintln!("removed: {runs} runs, {volumes} volumes, {namespaces} namespaces");
        }
        held = removed.err();
        found = survey(&options)?;
    }
    if args.trial {
        let stop = Stop::listen()?;
        try_classes(&mut found, &args.place, &stop)?;
    }
    let text = match args.format {
        DoctorFormat::Table => report::cluster::text(&found),
        DoctorFormat::Json => report::cluster::json(&found),
    };
    output.save(&text)?;
    if let Some(held) = held {
        return Err(held.into());
    }
    count_findings(&found.findings, args.fail_on)
}

/// Makes a claim of each class, and a pod that mounts it.
fn try_classes(found: &mut Survey, args: &ClusterArgs, stop: &Stop) -> Result<(), Failure> {
    for class in found.classes.iter_mut().flatten() {
        let outcome = try_class(&class.name, args, stop);
        stop.check()?;
        class.trial = Some(match outcome {
            Ok(works) => works,
            Err(Failure::Run(error)) => Trial::Fails {
                cause: cause(&error),
                remedy: error.remedy(),
            },
            Err(other) => return Err(other),
        });
    }
    found.judge();
    Ok(())
}

fn cause(error: &RunError) -> String {
    match error {
        RunError::Unready { cause, .. } => cause.clone(),
        other => other.to_string(),
    }
}

fn try_class(class: &str, args: &ClusterArgs, stop: &Stop) -> Result<Trial, Failure> {
    let target = Target::StorageClass(class.to_owned());
    let mut live = PodLive::new(&target.to_string());
    let watch = Watch {
        tell: &mut |told: Told<'_>| live.tell(told),
        interrupts: &|| stop.interrupt.count(),
    };
    let args = ClusterArgs {
        claim_size: args.claim_size.or(Some(TRIAL_BYTES)),
        timeout: args.timeout.or(Some(TRIAL_NS)),
        watch_nodes: vec!["none".to_owned()],
        ..args.clone()
    };
    let options = cluster::options_of_pods(target, &args, None)?;
    let begun = Instant::now();
    let mut session = cluster::open_unwatched(&options, watch)?;
    let place = session.look();
    let elapsed_ms = begun.elapsed().as_millis() as u64;
    if let Err(left) = Box::new(session).close() {
        Failure::from(left).warn();
    }
    Ok(Trial::Works {
        elapsed_ms,
        free_bytes: match place? {
            Place::Directory { free_bytes } => Some(free_bytes),
            Place::Existing { bytes, .. } => Some(bytes),
        },
    })
}
