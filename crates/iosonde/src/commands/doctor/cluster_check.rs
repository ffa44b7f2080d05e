//! `iosonde doctor --cluster`: storage classes and nodes of a cluster, findings, and leftovers.

use super::class_trials::try_classes;
use super::count_findings;
use super::node_inspection::inspect_nodes;
use crate::args::{DoctorArgs, DoctorFormat};
use crate::commands::cluster;
use crate::commands::target_session::refuse_unused_medium;
use crate::commands::unused_cluster_options::{
    refuse_keep_without_trial, refuse_options_without_trial, refuse_watched_nodes,
};
use crate::failure::CommandError;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_cluster::leftovers::{self, RemovedLeftovers};
use iosonde_cluster::survey::survey;
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, RunError};

pub(super) fn run(args: &DoctorArgs) -> Result<(), CommandError> {
    cluster::one_cluster(&args.place)?;
    // No pod of these checks has an emptyDir that the user describes.
    refuse_unused_medium(&[], &args.place)?;
    refuse_watched_nodes(&args.place, "doctor --cluster")?;
    refuse_keep_without_trial(args)?;
    refuse_options_without_trial(args)?;
    let output = Output::open_report(args.output.as_deref())?;
    // The target of these options is not used.
    let options = args.place.options(TargetUri::EmptyDir);
    let mut found = survey(&options)?;
    let mut held = None;
    if args.clean {
        if found.hides_runs {
            return Err(RunError::from(clean_up_forbidden(options.namespace.as_deref())).into());
        }
        let (runs, volumes) = (&found.leftovers, &found.lost_volumes);
        match leftovers::remove(&options, runs, volumes, &found.lost_namespaces) {
            Ok(removed) => eprintln!("{}", removed_in_words(&removed)),
            Err(error) => held = Some(error),
        }
        found = survey(&options)?;
    }
    found.requested_bytes = args.place.ephemeral_storage;
    found.judge();
    let makes_pods = args.trial || args.inspect_nodes;
    let stop = makes_pods.then(StopSignal::listen).transpose()?;
    if let Some(stop) = stop.as_ref().filter(|_| args.inspect_nodes) {
        match inspect_nodes(&found, &args.place, stop) {
            Ok(nodes) => found.inspected = Some(nodes),
            // The rest of the report is printed first.
            Err(CommandError::Run(error)) => {
                stop.check()?;
                held.get_or_insert(error);
            }
            Err(other) => return Err(other),
        }
    }
    if let Some(stop) = stop.as_ref().filter(|_| args.trial) {
        try_classes(&mut found, &args.place, stop)?;
    }
    let text = match args.format {
        DoctorFormat::Table => super::cluster_report::survey_text(&found),
        DoctorFormat::Json => super::cluster_report::survey_json(&found),
    };
    output.save(&text)?;
    if let Some(held) = held {
        return Err(held.into());
    }
    count_findings(&found.findings, args.fail_on)
}

/// Returns the obstacle of a user who may not list runs in this namespace, or in any.
fn clean_up_forbidden(namespace: Option<&str>) -> ClusterObstacle {
    ClusterObstacle::CleanUpForbidden {
        rights: vec!["list jobs".to_owned()],
        role: leftovers::clean_up_role(namespace),
        suggests_namespace: namespace.is_none(),
    }
}

/// Describes the objects that `--clean` removed.
fn removed_in_words(removed: &RemovedLeftovers) -> String {
    let count = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    format!(
        "removed: {}, {}, {}",
        count(removed.runs, "run"),
        count(removed.volumes, "volume"),
        count(removed.namespaces, "namespace")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_up_of_all_namespaces_suggests_one_of_them() {
        let remedy = |namespace| RunError::from(clean_up_forbidden(namespace)).remedy();
        assert!(remedy(None).ends_with("or name one namespace with -n"));
        assert!(!remedy(Some("lab")).contains("-n"));
    }

    #[test]
    fn removed_objects_are_counted_in_words() {
        let removed = RemovedLeftovers {
            runs: 2,
            volumes: 1,
            namespaces: 0,
        };
        assert_eq!(
            removed_in_words(&removed),
            "removed: 2 runs, 1 volume, 0 namespaces"
        );
    }
}
