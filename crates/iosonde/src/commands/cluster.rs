//! Targets in a Kubernetes cluster, for the commands that take any target.

use super::ceph;
use super::embedded_agents::agents;
use crate::args::{ClusterArgs, VolumeModeArg};
use crate::failure::CommandError;
use iosonde_cluster::options::own_arch;
use iosonde_cluster::{
    ClusterOptions, ClusterRunner, NeededSpace, PodPlacement, PodSession, Pods, PreflightResult,
    SetupObserver,
};
use iosonde_job::outside_access::{OutsideAccess, outside_accesses};
use iosonde_job::plan::Job;
use iosonde_job::target_scheme::{TargetScheme, is_path_name};
use iosonde_job::target_uri::TargetError;
use iosonde_job::volume_space::least_volume_bytes;
use iosonde_job::{Plan, TargetUri, quote_shell_word};
use iosonde_result::cache_state::ColdLayers;
use iosonde_result::run_error::UnsupportedFeature;
use iosonde_result::wire::PathInfo;
use iosonde_study::probe::{StudyTarget, StudyTargetKind};
use std::path::PathBuf;

/// Parses a URI of a target in a cluster. `None` for any other name.
pub(crate) fn target(name: &str) -> Result<Option<TargetUri>, CommandError> {
    if is_path_name(name) {
        return Ok(None);
    }
    let target: TargetUri = name.parse().map_err(|error: TargetError| {
        CommandError::usage(error.to_string(), invalid_target_remedy(name))
    })?;
    Ok(target.is_in_cluster().then_some(target))
}

/// The remedy for a name that is no target: the command that lists the names for its scheme.
fn invalid_target_remedy(name: &str) -> String {
    let remedy = match TargetScheme::of_name(name) {
        Some(TargetScheme::StorageClass | TargetScheme::Ephemeral) => {
            "name a class that `kubectl get storageclass` lists"
        }
        Some(TargetScheme::Claim) => "name a claim that `kubectl get pvc --all-namespaces` lists",
        Some(TargetScheme::Pods) => "use labels that `kubectl get pods --show-labels` lists",
        Some(TargetScheme::EmptyDir) => "use emptydir://",
        Some(scheme @ TargetScheme::HostPath) => {
            let path = scheme.strip(name).filter(|path| !path.is_empty());
            let target = format!("{scheme}/{}", path.unwrap_or("mnt/data"));
            return format!("use {}", quote_shell_word(&target));
        }
        Some(scheme) if scheme.is_ceph() => return ceph::invalid_target_remedy(name),
        _ => "see docs/kubernetes.md for the targets in a cluster",
    };
    remedy.to_owned()
}

/// As [`target`], with the options for its cluster: the name may end in `@CONTEXT`.
pub(crate) fn target_within(
    name: &str,
    args: &ClusterArgs,
) -> Result<Option<(TargetUri, ClusterArgs)>, CommandError> {
    if is_path_name(name) {
        return Ok(None);
    }
    let (name, context) = args.split(name);
    let mut args = args.clone();
    if let Some(context) = context {
        args.context = vec![context.clone()];
    }
    Ok(target(name)?.map(|target| (target, args)))
}

/// The error for pod options with a target of this machine.
pub(crate) fn no_pods_of(name: &str) -> CommandError {
    CommandError::usage(
        format!("{name} is not in a Kubernetes cluster, so pods cannot measure it"),
        "leave out --pods and --per-node (in a suite, `pods` and `per_node`), or name a target in \
         a cluster, e.g. sc://CLASS",
    )
}

/// Fails if `--context` names several clusters, for commands that use only one.
pub(crate) fn one_cluster(args: &ClusterArgs) -> Result<(), CommandError> {
    match args.context.as_slice() {
        [] | [_] => Ok(()),
        several => Err(CommandError::usage(
            format!(
                "--context names {} clusters, but this command uses one",
                several.len()
            ),
            "name one context; `iosonde probe`, `sweep`, `run` and `k8s fio` compare several",
        )),
    }
}

/// As [`open_pods`], but by default without node watchers, for callers that do not report nodes.
pub(crate) fn open_unwatched<'w>(
    options: &ClusterOptions,
    watch: SetupObserver<'w>,
) -> Result<PodSession<'w>, CommandError> {
    let mut options = options.clone();
    // The caches of nodes that serve the volume are found by watching them.
    if !options.cold.node {
        options.watch_nodes.get_or_insert_default();
    }
    open_pods(options, watch)
}

/// Checks whether the cluster could run the measurement. Creates nothing.
pub(crate) fn check(
    target: TargetUri,
    args: &ClusterArgs,
    pods: Option<Pods>,
    interrupts: &dyn Fn() -> u32,
) -> Result<PreflightResult, CommandError> {
    check_options(&options_of_pods(target, args, pods)?, interrupts)
}

/// As [`check`], with complete options.
pub(crate) fn check_options(
    options: &ClusterOptions,
    interrupts: &dyn Fn() -> u32,
) -> Result<PreflightResult, CommandError> {
    Ok(iosonde_cluster::check(options, &archs(), interrupts)?)
}

/// Returns the architectures of the agents. Commands that send no agent run without one, too.
pub(crate) fn archs() -> Vec<&'static str> {
    match agents() {
        Ok(agents) => agents.iter().map(|agent| agent.arch).collect(),
        Err(_) => vec![own_arch()],
    }
}

/// Creates one pod or several, each with the target's volume.
pub(crate) fn open_pods<'w>(
    options: ClusterOptions,
    watch: SetupObserver<'w>,
) -> Result<PodSession<'w>, CommandError> {
    let runner = ClusterRunner {
        options,
        agents: &agents()?,
    };
    Ok(runner.open(watch)?)
}

/// Options of the cluster session, with `pods` if there are to be several.
pub(crate) fn options_of_pods(
    target: TargetUri,
    args: &ClusterArgs,
    pods: Option<Pods>,
) -> Result<ClusterOptions, CommandError> {
    one_cluster(args)?;
    let is_class = matches!(target, TargetUri::StorageClass(_));
    let is_shared = pods.is_some_and(|pods| pods.shared);
    if is_shared && !is_class {
        return Err(CommandError::usage(
            format!("{target}: --shared requires a new claim of a storage class"),
            "use sc://CLASS, or leave out --shared",
        ));
    }
    if pods.is_some_and(|pods| pods.checks_shared_file) {
        refuse_unshared_file(&target, args, pods.and_then(|pods| pods.count))?;
    }
    if matches!(target, TargetUri::Pods { .. }) {
        refuse_options_of_new_pods(&target, args, pods)?;
    }
    let mut options = args.options(target);
    if is_shared && args.access_mode.is_none() {
        options.access_mode = "ReadWriteMany".to_owned();
    }
    Ok(ClusterOptions { pods, ..options })
}

/// Refuses a shared file on a block device, or of one pod.
fn refuse_unshared_file(
    target: &TargetUri,
    args: &ClusterArgs,
    count: Option<u32>,
) -> Result<(), CommandError> {
    if args.volume_mode == Some(VolumeModeArg::Block) {
        return Err(CommandError::usage(
            format!("{target}: a block device has no files, which --shared=file requires"),
            "leave out --volume-mode, or use --shared without =file",
        ));
    }
    if count == Some(1) {
        return Err(CommandError::usage(
            format!("{target}: one pod shares no file"),
            "use --pods 2 or more, or leave out --shared=file",
        ));
    }
    Ok(())
}

/// Refuses options that describe new pods or volumes, if the target is pods of the user.
fn refuse_options_of_new_pods(
    target: &TargetUri,
    args: &ClusterArgs,
    pods: Option<Pods>,
) -> Result<(), CommandError> {
    let option = match pods {
        Some(_) => Some("--pods or --per-node"),
        None => args.option_of_new_pods(),
    };
    match option {
        None => Ok(()),
        Some(option) => Err(CommandError::usage(
            format!("{target} names pods that exist, so {option} has no effect"),
            format!("leave out {option}; the selector chooses the pods"),
        )),
    }
}

/// Adds to the options how many pods of the user the session has, and whether they share a claim.
pub(crate) fn with_selected_pods(
    options: ClusterOptions,
    session: &PodSession<'_>,
) -> ClusterOptions {
    if !matches!(options.target, TargetUri::Pods { .. }) || session.pod_count() < 2 {
        return options;
    }
    let pods = Pods {
        count: u32::try_from(session.pod_count()).ok(),
        placement: PodPlacement::Any,
        shared: session.is_claim_shared(),
        checks_shared_file: false,
    };
    ClusterOptions {
        pods: Some(pods),
        ..options
    }
}

/// Allows overwriting if `consent` lists the target by the name that the user gave.
pub(crate) fn with_consent(
    options: ClusterOptions,
    name: &str,
    consent: &[PathBuf],
) -> ClusterOptions {
    ClusterOptions {
        allow_overwrite: consent.iter().any(|path| path.as_os_str() == name),
        ..options
    }
}

/// Drops the caches of these layers before the jobs. [`PodSession`] gets those of OSDs later.
pub(crate) fn with_cold(options: ClusterOptions, cold: ColdLayers) -> ClusterOptions {
    ClusterOptions { cold, ..options }
}

/// Space that the files of the jobs need in the volume of a pod. `option` sets the size of a claim,
/// and reads GiB with `gib_suffix`.
pub(crate) fn needed_space(
    plan: &Plan,
    options: &ClusterOptions,
    (option, gib_suffix): (&'static str, &'static str),
) -> Option<NeededSpace> {
    let bytes = least_volume_bytes(plan, options.is_block());
    (bytes > 0).then_some(NeededSpace {
        bytes,
        option,
        gib_suffix,
    })
}

/// Note on figures that are sums over several pods.
pub(crate) fn note_of_pods(session: &PodSession<'_>, options: &ClusterOptions) -> Option<String> {
    let count = session.pod_count();
    (count > 1).then(|| {
        let where_ = match options.is_one_volume() {
            true => "a file of its own in one volume",
            false => "a volume of its own",
        };
        format!("all figures combine {count} pods, each on {where_}")
    })
}

/// Describes the volume of the pod as the target of a probe.
pub(crate) fn probe_target(
    name: &str,
    session: &PodSession<'_>,
    found: PathInfo,
    options: &ClusterOptions,
) -> StudyTarget {
    let path = session.path();
    let kind = match found {
        PathInfo::Directory { free_bytes } => StudyTargetKind::Directory {
            free_bytes: own_bytes(options).map_or(free_bytes, |own| own.min(free_bytes))
                / sharers(options, session.pod_count()),
        },
        // The claim is new or empty, or the user agreed to lose its data.
        PathInfo::Existing { bytes, device, .. } => StudyTargetKind::Existing {
            bytes,
            device,
            consent: true,
        },
    };
    let path = match kind {
        StudyTargetKind::Directory { .. } => format!("{path}/probe"),
        _ => path.to_owned(),
    };
    StudyTarget {
        name: name.to_owned(),
        path,
        kind,
    }
}

/// Requested size of a new volume. Many file systems report the size of the whole disk instead.
fn own_bytes(options: &ClusterOptions) -> Option<u64> {
    match options.target {
        TargetUri::StorageClass(_) | TargetUri::Ephemeral(_) | TargetUri::EmptyDir => {
            Some(options.claim_bytes)
        }
        _ => None,
    }
}

/// Default working set on a volume made for the run: 80 % of it at most, as no other program uses
/// it. Pods that share a volume divide this.
pub(crate) fn working_set(options: &ClusterOptions, pods: usize, usual_bytes: u64) -> Option<u64> {
    let each = |own: u64| own / 5 * 4 / sharers(options, pods);
    own_bytes(options).map(|own| usual_bytes.min(each(own)))
}

/// Number of pods that write to the same volume.
fn sharers(options: &ClusterOptions, pods: usize) -> u64 {
    match options.is_one_volume() {
        true => pods.max(1) as u64,
        false => 1,
    }
}

/// Whether a job writes logs or a trace.
pub(crate) fn has_logs(job: &Job) -> bool {
    let logs = &job.measure.logs;
    [&logs.bw, &logs.iops, &logs.lat, &logs.hist, &logs.trace]
        .iter()
        .any(|log| log.is_some())
}

/// Refuses jobs with traces, commands or logs, which studies in pods do not support.
pub(crate) fn refuse_what_stays_behind(plan: &Plan) -> Result<(), CommandError> {
    refuse_traces_and_commands(plan)?;
    match plan.jobs.iter().find(|job| has_logs(job)) {
        None => Ok(()),
        Some(job) => {
            let job = job.name.clone();
            Err(CommandError::Run(
                UnsupportedFeature::LogsInPod { job }.into(),
            ))
        }
    }
}

/// Refuses jobs that replay traces or run commands, which a pod does not support.
pub(crate) fn refuse_traces_and_commands(plan: &Plan) -> Result<(), CommandError> {
    if let Some(job) = plan.jobs.iter().find(|job| job.replay.is_some()) {
        let job = job.name.clone();
        return Err(CommandError::Run(
            UnsupportedFeature::ReplayInPod { job }.into(),
        ));
    }
    let accesses = plan.jobs.iter().flat_map(outside_accesses);
    if let Some(access) = accesses.into_iter().find(OutsideAccess::needs_trust) {
        let refused = UnsupportedFeature::OutsideAccessInPod {
            job: access.job,
            option: access.option.to_owned(),
            value: access.value,
            kind: access.kind,
        };
        return Err(CommandError::Run(refused.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_result::run_error::RunError;

    #[test]
    fn commands_of_jobs_for_pods_are_refused() {
        let refused = |option: &str| {
            let words = ["--name=t".into(), "--size=1m".into(), option.into()];
            let parsed = iosonde_job::parse(&words, &FakeEnv::new()).unwrap();
            refuse_what_stays_behind(&parsed.plan).err()
        };
        for option in [
            "--exec_prerun=true",
            "--exec_postrun=true",
            "--ioscheduler=none",
            "--mem=mmap:/m",
            "--write_bw_log=b",
        ] {
            let failure = refused(option).expect(option);
            let name = option.trim_start_matches("--").split('=').next().unwrap();
            let CommandError::Run(RunError::NoFeature { cause }) = &failure else {
                panic!("{failure:?}");
            };
            let is_named = match &**cause {
                UnsupportedFeature::OutsideAccessInPod { option, .. } => option == name,
                UnsupportedFeature::LogsInPod { .. } => name == "write_bw_log",
                _ => false,
            };
            assert!(is_named, "{failure:?}");
        }
        assert!(refused("--rw=randread").is_none());
        let words = ["--name=t", "--size=1m", "--write_bw_log=b"].map(Into::into);
        let parsed = iosonde_job::parse(&words, &FakeEnv::new()).unwrap();
        assert!(
            refuse_traces_and_commands(&parsed.plan).is_ok(),
            "fio's logs are fetched"
        );
        assert!(has_logs(&parsed.plan.jobs[0]));
    }

    #[test]
    fn target_parses_only_cluster_uris() {
        assert_eq!(target("/mnt").unwrap(), None);
        assert_eq!(target("sim:iops=100").unwrap(), None);
        assert!(matches!(
            target("sc://fast").unwrap(),
            Some(TargetUri::StorageClass(_))
        ));
        let failure = target("cs://fast").unwrap_err();
        assert_eq!(failure.status(), 2);
        assert_eq!(
            failure.usage_parts().0,
            "unknown target scheme `cs://`; did you mean `sc://`?"
        );
        for (name, part) in [
            ("rbd://pool", "`rbd ls pool`"),
            ("cs://fast", "docs/kubernetes.md"),
            ("sc://", "`kubectl get storageclass`"),
            ("pvc://", "`kubectl get pvc --all-namespaces`"),
            ("hostpath://mnt/x", "use hostpath:///mnt/x"),
            ("hostpath://my data", "use 'hostpath:///my data'"),
        ] {
            let help = target(name).unwrap_err().text(false);
            assert!(help.contains(part), "{help}");
        }
    }

    #[test]
    fn shared_file_needs_a_file_system_and_several_pods() {
        let refused = |count, volume_mode| {
            let args = ClusterArgs {
                volume_mode,
                ..ClusterArgs::default()
            };
            let pods = Pods {
                count,
                placement: PodPlacement::Any,
                shared: true,
                checks_shared_file: true,
            };
            let target = TargetUri::StorageClass("nfs".into());
            options_of_pods(target, &args, Some(pods)).is_err()
        };
        assert!(refused(Some(2), Some(VolumeModeArg::Block)) && refused(Some(1), None));
        assert!(!refused(Some(2), None) && !refused(None, None));
    }

    #[test]
    fn working_set_is_four_fifths_of_new_volume() {
        let mut options = ClusterOptions::new(TargetUri::StorageClass("fast".into()));
        assert_eq!(working_set(&options, 1, 4 << 30), Some(4 << 30));
        options.claim_bytes = 1 << 30;
        let most = (1 << 30) / 5 * 4;
        assert_eq!(working_set(&options, 1, 4 << 30), Some(most));
        assert_eq!(
            working_set(&options, 4, 4 << 30),
            Some(most),
            "a claim each"
        );
        options.pods = Some(Pods {
            count: Some(4),
            placement: PodPlacement::Any,
            shared: true,
            checks_shared_file: false,
        });
        assert_eq!(working_set(&options, 4, 4 << 30), Some(most / 4));
        options.target = TargetUri::HostPath("/mnt".into());
        assert_eq!(working_set(&options, 4, 4 << 30), None);
    }
}
