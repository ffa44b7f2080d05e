//! Targets in a Kubernetes cluster, for the commands that take any target.

use crate::args::ClusterArgs;
use crate::failure::Failure;
use iosonde_cluster::options::own_arch;
use iosonde_cluster::{
    AgentProgram, AnySession, Checked, ClusterOptions, ClusterRunner, Pods, Watch,
};
use iosonde_job::outside_access::{OutsideAccess, outside_accesses};
use iosonde_job::{Plan, Target};
use iosonde_result::session::RunError;
use iosonde_result::wire::Place;
use iosonde_study::probe::{ProbeTarget, TargetKind};
use std::borrow::Cow;
use std::path::PathBuf;

/// The agent that the build has embedded; empty in a build for development.
static EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));

/// What a name means, if it is a target in a cluster.
pub(crate) fn target(name: &str) -> Result<Option<Target>, Failure> {
    if !name.contains("://") {
        return Ok(None);
    }
    let target: Target = name
        .parse()
        .map_err(|error: iosonde_job::target::TargetError| {
            Failure::usage(
                error.to_string(),
                "see docs/kubernetes.md for the targets in a cluster",
            )
        })?;
    Ok(target.is_in_cluster().then_some(target))
}

/// What a name means, if it is a target in a cluster, and the options of its cluster: a name may end in `@CONTEXT`.
pub(crate) fn target_within(
    name: &str,
    args: &ClusterArgs,
) -> Result<Option<(Target, ClusterArgs)>, Failure> {
    if !name.contains("://") {
        return Ok(None);
    }
    let (name, context) = args.split(name);
    let mut args = args.clone();
    if let Some(context) = context {
        args.context = vec![context.clone()];
    }
    Ok(target(name)?.map(|target| (target, args)))
}

/// A target of this machine has no pods.
pub(crate) fn no_pods_of(name: &str) -> Failure {
    Failure::usage(
        format!("{name} is not in a Kubernetes cluster, and cannot have several pods"),
        "leave out --pods and its kin, or name a target such as sc://CLASS",
    )
}

/// Where only one cluster can be meant.
pub(crate) fn one_cluster(args: &ClusterArgs) -> Result<(), Failure> {
    match args.context.as_slice() {
        [] | [_] => Ok(()),
        several => Err(Failure::usage(
            format!(
                "--context names {} clusters, but this is done in one",
                several.len()
            ),
            "name one; `iosonde probe`, `sweep`, `run` and `k8s fio` compare several",
        )),
    }
}

/// As [`open_any`], for what does not show nodes: only those that are asked for are watched.
pub(crate) fn open_unwatched<'w>(
    options: &ClusterOptions,
    watch: Watch<'w>,
) -> Result<AnySession<'w>, Failure> {
    let mut options = options.clone();
    options.watch_nodes.get_or_insert_default();
    open_any(options, watch)
}

/// Asks the cluster whether the target could be measured; nothing is made.
pub(crate) fn check(
    target: Target,
    args: &ClusterArgs,
    pods: Option<Pods>,
    interrupts: &dyn Fn() -> u32,
) -> Result<Checked, Failure> {
    let options = options_of_pods(target, args, pods)?;
    Ok(iosonde_cluster::check(&options, own_arch(), interrupts)?)
}

/// Makes one pod or several, each with the target's volume.
pub(crate) fn open_any<'w>(
    options: ClusterOptions,
    watch: Watch<'w>,
) -> Result<AnySession<'w>, Failure> {
    let bytes = agent()?;
    let runner = ClusterRunner {
        options,
        agent: AgentProgram {
            bytes: &bytes,
            arch: own_arch(),
        },
    };
    Ok(runner.open_any(watch)?)
}

/// What is asked for, with several pods if there are to be.
pub(crate) fn options_of_pods(
    target: Target,
    args: &ClusterArgs,
    pods: Option<Pods>,
) -> Result<ClusterOptions, Failure> {
    one_cluster(args)?;
    let is_class = matches!(target, Target::StorageClass(_));
    let is_shared = pods.is_some_and(|pods| pods.shared);
    if is_shared && !is_class {
        return Err(Failure::usage(
            format!("{target}: only a claim of a storage class is made for several pods to share"),
            "use sc://CLASS, or leave out --shared",
        ));
    }
    let mut options = args.options(target);
    if is_shared && args.access_mode.is_none() {
        options.access_mode = "ReadWriteMany".to_owned();
    }
    Ok(ClusterOptions { pods, ..options })
}

/// Where the user agreed to lose what the target carries, by the name that the target was given.
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

/// What is said of figures that several pods have made together.
pub(crate) fn note_of_pods(session: &AnySession<'_>, options: &ClusterOptions) -> Option<String> {
    let count = session.pods();
    (count > 1).then(|| {
        let where_ = match options.is_one_volume() {
            true => "a file of its own in one volume",
            false => "a volume of its own",
        };
        format!("all figures are those of {count} pods together, each on {where_}")
    })
}

/// The agent that goes into pods.
pub(crate) fn agent() -> Result<Cow<'static, [u8]>, Failure> {
    if let Some(path) = std::env::var_os("IOSONDE_AGENT") {
        let read = std::fs::read(&path).map(Cow::Owned);
        return read.map_err(|error| {
            Failure::Run(RunError::Target {
                path: path.to_string_lossy().into_owned(),
                problem: error.to_string(),
                remedy: "IOSONDE_AGENT must name the agent's executable, or be unset".to_owned(),
            })
        });
    }
    if EMBEDDED.is_empty() {
        return Err(Failure::Run(RunError::Unsupported {
            problem: "this build of iosonde carries no agent to send into pods".to_owned(),
            remedy: "build it with `cargo build --release` where the static C library is installed (Debian: libc6-dev, \
                     Fedora: glibc-static), or set IOSONDE_AGENT to the agent's executable"
                .to_owned(),
        }));
    }
    Ok(Cow::Borrowed(EMBEDDED))
}

/// What a probe measures in the pod.
pub(crate) fn probe_target(
    name: &str,
    session: &AnySession<'_>,
    found: Place,
    options: &ClusterOptions,
) -> ProbeTarget {
    let path = session.path();
    let kind = match found {
        Place::Directory { free_bytes } => TargetKind::Directory {
            free_bytes: own_bytes(options).map_or(free_bytes, |own| own.min(free_bytes))
                / sharers(options, session.pods()),
        },
        // The claim is made for this run, or carries nothing, or the user agreed to lose what it carries.
        Place::Existing { bytes, device, .. } => TargetKind::Existing {
            bytes,
            device,
            consent: true,
        },
    };
    let path = match kind {
        TargetKind::Directory { .. } => format!("{path}/probe"),
        _ => path.to_owned(),
    };
    ProbeTarget {
        name: name.to_owned(),
        path,
        kind,
    }
}

/// Room of a volume that is made for the run. Many file systems show that of the whole disk behind it.
fn own_bytes(options: &ClusterOptions) -> Option<u64> {
    match options.target {
        Target::StorageClass(_) | Target::Ephemeral(_) | Target::EmptyDir => {
            Some(options.claim_bytes)
        }
        _ => None,
    }
}

/// How much of a volume that is made for the run is used, where nothing else is said: most of it, for nobody is disturbed.
/// Pods that share a volume have a part of it each.
pub(crate) fn working_set(options: &ClusterOptions, pods: usize, usual_bytes: u64) -> Option<u64> {
    let each = |own: u64| own / 5 * 4 / sharers(options, pods);
    own_bytes(options).map(|own| usual_bytes.min(each(own)))
}

/// How many of the pods write into the same volume.
fn sharers(options: &ClusterOptions, pods: usize) -> u64 {
    match options.is_one_volume() {
        true => pods.max(1) as u64,
        false => 1,
    }
}

/// What a job asks for that cannot be had in a pod.
pub(crate) fn refuse_what_stays_behind(plan: &Plan) -> Result<(), Failure> {
    let has_log = |job: &iosonde_job::plan::Job| {
        let logs = &job.measure.logs;
        [&logs.bw, &logs.iops, &logs.lat, &logs.hist, &logs.trace]
            .iter()
            .any(|log| log.is_some())
    };
    if let Some(job) = plan.jobs.iter().find(|job| job.replay.is_some()) {
        return Err(Failure::Run(RunError::Unsupported {
            problem: format!("{}: a pod does not have the trace of read_iolog", job.name),
            remedy: "replay it on this machine, or describe the pattern by rw=, bssplit= and rate="
                .to_owned(),
        }));
    }
    let accesses = plan.jobs.iter().flat_map(outside_accesses);
    if let Some(access) = accesses.into_iter().find(OutsideAccess::needs_trust) {
        return Err(Failure::Run(RunError::Unsupported {
            problem: format!("{access}: a pod does nothing but I/O on its volume"),
            remedy: "leave it out; what has to be done before or after the I/O, do with kubectl"
                .to_owned(),
        }));
    }
    match plan.jobs.iter().find(|job| has_log(job)) {
        None => Ok(()),
        Some(job) => Err(Failure::Run(RunError::Unsupported {
            problem: format!(
                "{}: logs (write_bw_log and its kin) would stay in the pod",
                job.name
            ),
            remedy: "leave them out: --output-format=json has the run second by second".to_owned(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;

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
            assert!(failure.text(false).contains(name), "{failure:?}");
        }
        assert!(refused("--rw=randread").is_none());
    }

    #[test]
    fn only_targets_in_a_cluster_are_meant() {
        assert_eq!(target("/mnt").unwrap(), None);
        assert_eq!(target("sim:iops=100").unwrap(), None);
        assert!(matches!(
            target("sc://fast").unwrap(),
            Some(Target::StorageClass(_))
        ));
        let failure = target("cs://fast").unwrap_err();
        assert_eq!(failure.status(), 2);
        assert!(
            failure.text(false).contains("did you mean `sc://`"),
            "{}",
            failure.text(false)
        );
    }

    #[test]
    fn a_volume_of_ours_is_used_for_the_most_part() {
        let mut options = ClusterOptions::new(Target::StorageClass("fast".into()));
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
            placement: iosonde_cluster::Placement::Any,
            shared: true,
        });
        assert_eq!(working_set(&options, 4, 4 << 30), Some(most / 4));
        options.target = Target::HostPath("/mnt".into());
        assert_eq!(working_set(&options, 4, 4 << 30), None);
    }
}
