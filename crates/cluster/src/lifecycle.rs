//! [`LifecycleSession`]: makes, uses and removes volumes of storage classes, and measures each
//! stage by the arrival of watch events.
//!
//! One Job owns all objects. The session extends its deadline, so that the cluster removes
//! everything soon after the client is killed. `volume_round` is one round, `round_state` its
//! state, `volume_timeline` the times of one volume.

pub(crate) mod lifecycle_manifest;
mod lifecycle_role;
mod lifecycle_watch;
mod observed_change;
mod phase_progress;
mod round_state;
mod volume_round;
mod volume_timeline;

pub(crate) use lifecycle_role::lifecycle_rights;

use crate::api;
use crate::class_retention::ClassRetention;
use crate::connect::{KubeCluster, runtime};
use crate::event_signal::EventSignal;
use crate::leftovers;
use crate::manifest::{AgentStart, RunSpec};
use crate::options::{ClusterOptions, KeepOption, PodPlacement, Pods};
use crate::pod_set::{come_in, new_id};
use crate::preflight::{self, Facts, Readiness};
use crate::rights_role::CommandRights;
use crate::run_objects::RunObjects;
use crate::setup_observer::{SetupEvent, SetupObserver, unless_interrupted};
use iosonde_job::TargetUri;
use iosonde_result::run_error::{ClusterObstacle, ClusterRequest, RunError, VolumeProblem};
use iosonde_result::volume_lifecycle::{LifecycleClass, LifecycleRound, LifecycleRoundResult};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams, PostParams};
use lifecycle_manifest::LEASE_S;
use lifecycle_role::lifecycle_roles;
use lifecycle_watch::LifecycleWatch;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Period of the extensions of the Job's deadline.
const LEASE_PERIOD: Duration = Duration::from_secs(30);
/// Provisioner of classes whose volumes are made by hand.
pub(crate) const STATIC_PROVISIONER: &str = "kubernetes.io/no-provisioner";

const _: () = assert!(LEASE_PERIOD.as_secs() * 3 < LEASE_S as u64);

/// A class with the options of its volumes.
struct PreparedClass {
    class: LifecycleClass,
    options: ClusterOptions,
    image: String,
}

/// A session that measures rounds of volumes.
pub struct LifecycleSession<'a> {
    runtime: Runtime,
    objects: RunObjects,
    observer: SetupObserver<'a>,
    watch: LifecycleWatch,
    classes: Vec<PreparedClass>,
    labels: BTreeMap<String, String>,
    owner: OwnerReference,
    lease: JoinHandle<()>,
    /// Whether a class retains volumes, or this user may not read classes.
    may_retain: bool,
    /// Number of the next volume of the run.
    next_volume: u32,
}

impl<'a> LifecycleSession<'a> {
    /// Checks the classes and the rights, creates the Job and waits for its pod. Each class is a
    /// name for the user and the options of its volumes, whose target is the class. `most` is the
    /// largest number of volumes at the same time. `archs` are the architectures of the nodes.
    ///
    /// # Errors
    /// If a class cannot be measured, a right is missing, or the pod does not start.
    pub fn open(
        classes: Vec<(String, ClusterOptions)>,
        most: u32,
        archs: &[&str],
        mut observer: SetupObserver<'a>,
    ) -> Result<LifecycleSession<'a>, RunError> {
        debug_assert!(!classes.is_empty() && most > 0);
        let runtime = runtime()?;
        (observer.tell)(SetupEvent::Waiting("the cluster's answer"));
        let (cluster, facts, command) = runtime.block_on(query_cluster(&classes, &mut observer))?;
        let mut each = classes.iter().zip(&facts);
        let may_retain = each
            .any(|((_, options), facts)| facts.classes.is_none() || is_retaining(facts, options));
        let mut prepared = Vec::new();
        let mut ready = Readiness::default();
        for ((name, options), facts) in classes.into_iter().zip(facts) {
            let (class, of_class) = judge_class(facts, (name, options), most, archs)?;
            for note in &of_class.notes {
                (observer.tell)(SetupEvent::Note(note));
            }
            ready.makes_namespace = of_class.makes_namespace;
            prepared.push(class);
        }
        let id = new_id();
        let options = &prepared[0].options;
        let objects = RunObjects {
            job: crate::manifest::job_name(&id),
            agent: String::new(),
            made_namespace: options.create_namespace,
            keep_failed: KeepOption::Unavailable,
            event_signal: EventSignal::default(),
            selected: None,
            cluster,
            id,
        };
        if options.create_namespace {
            runtime.block_on(come_in(&objects, &ready, &command, &mut observer))?;
        }
        let started = runtime.block_on(start(&objects, &prepared[0], &mut observer));
        match started {
            Ok((owner, watch, lease)) => {
                (observer.tell)(SetupEvent::Over);
                Ok(LifecycleSession {
                    labels: labels(&objects.cluster),
                    runtime,
                    objects,
                    observer,
                    watch,
                    classes: prepared,
                    owner,
                    lease,
                    may_retain,
                    next_volume: 0,
                })
            }
            Err(error) => {
                (observer.tell)(SetupEvent::Waiting("everything to be removed"));
                if let Err(left) = runtime.block_on(objects.delete(observer.interrupts)) {
                    (observer.tell)(SetupEvent::Note(&format!("{left}; {}", left.remedy())));
                }
                Err(error)
            }
        }
    }

    /// Returns the classes, in the order of the user.
    pub fn classes(&self) -> Vec<LifecycleClass> {
        let classes = self.classes.iter();
        classes.map(|prepared| prepared.class.clone()).collect()
    }

    /// Returns the labels of the result: namespace and context.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Makes, uses and removes the volumes of a round.
    ///
    /// # Errors
    /// If a manifest cannot be built. Failures of volumes are part of the result.
    pub fn measure_round(
        &mut self,
        round: &LifecycleRound,
    ) -> Result<LifecycleRoundResult, RunError> {
        debug_assert!(round.class < self.classes.len() && round.at_once > 0);
        let first_volume = self.next_volume;
        self.next_volume += round.at_once;
        let prepared = &self.classes[round.class];
        let labels = BTreeMap::new();
        let objects = &self.objects;
        let run = volume_round::RoundRun {
            spec: spec_of_class(objects, prepared, &labels),
            owner: &self.owner,
            objects,
            class: &prepared.class,
            first_volume,
            round: *round,
        };
        let measured = run.measure(&mut self.watch, &mut self.observer);
        let result = self.runtime.block_on(measured)?;
        (self.observer.tell)(SetupEvent::Over);
        Ok(result)
    }

    /// Removes everything that the session has created, and waits for it. Volumes of a round that
    /// was stopped may still have the policy to be retained.
    ///
    /// # Errors
    /// If objects are left.
    pub fn close(mut self) -> Result<(), RunError> {
        self.lease.abort();
        (self.observer.tell)(SetupEvent::Waiting("everything to be removed"));
        let removed = self
            .runtime
            .block_on(self.objects.delete(self.observer.interrupts));
        let removed = match removed {
            Ok(()) if self.may_retain => leftovers::remove_retained_unless_interrupted(
                &self.runtime,
                &self.objects,
                &mut self.observer,
            )
            .map(drop),
            removed => removed,
        };
        (self.observer.tell)(SetupEvent::Over);
        removed
    }
}

/// Returns the parameters of the manifests of a class.
fn spec_of_class<'s>(
    objects: &'s RunObjects,
    prepared: &'s PreparedClass,
    labels: &'s BTreeMap<String, String>,
) -> RunSpec<'s> {
    RunSpec {
        id: &objects.id,
        namespace: &objects.cluster.namespace,
        image: &prepared.image,
        // The options limit the nodes.
        archs: &[],
        pods: 1,
        may_claim: true,
        // The shell of the image runs the commands, and no agent is sent.
        start: AgentStart::Streamed,
        labels,
        options: &prepared.options,
    }
}

/// Connects to the cluster, checks the rights and queries the facts for each class. Returns the
/// rights of the session, too.
async fn query_cluster(
    classes: &[(String, ClusterOptions)],
    observer: &mut SetupObserver<'_>,
) -> Result<(KubeCluster, Vec<Facts>, CommandRights), RunError> {
    let asked = async {
        let cluster = KubeCluster::connect(&classes[0].1).await?;
        let targets: Vec<&TargetUri> = classes.iter().map(|(_, one)| &one.target).collect();
        let retention = ClassRetention::query(&cluster, &targets).await;
        let command = lifecycle_rights(retention);
        let mut all_facts = Vec::new();
        for (_, options) in classes {
            let mut facts = preflight::query_facts(&cluster, options, &command).await?;
            // Rights that only an agent needs, such as exec, are not needed here.
            facts.missing_rights = Vec::new();
            all_facts.push(facts);
        }
        let lacking = match all_facts.iter().any(|facts| facts.lacks_namespace) {
            // The creator of the namespace may be granted rights in it.
            true => Vec::new(),
            false => preflight::missing(&cluster, command.needed.iter().copied()).await?,
        };
        let role = lifecycle_roles(&cluster.namespace, &classes[0].1, retention);
        Ok((cluster, all_facts, command, (lacking, role)))
    };
    let asked = unless_interrupted(observer.interrupts, asked);
    let (cluster, facts, command, (lacking, role)) = asked.await?;
    if lacking.is_empty() {
        return Ok((cluster, facts, command));
    }
    let obstacle = ClusterObstacle::MissingRights {
        rights: lacking.into_iter().map(preflight::in_words).collect(),
        role,
        is_bound_to_namespace: false,
    };
    Err(obstacle.into())
}

/// Returns the class with this name, if this user may read classes.
pub(crate) fn find_class<'f>(facts: &'f Facts, name: &str) -> Option<&'f StorageClass> {
    let mut classes = facts.classes.iter().flatten();
    classes.find(|class| class.metadata.name.as_deref() == Some(name))
}

/// Whether the class of the target retains volumes.
fn is_retaining(facts: &Facts, options: &ClusterOptions) -> bool {
    let TargetUri::StorageClass(name) = &options.target else {
        return false;
    };
    let class = find_class(facts, name);
    class.is_some_and(|class| class.reclaim_policy.as_deref() == Some("Retain"))
}

/// Checks whether volumes of a class can be measured.
fn judge_class(
    mut facts: Facts,
    (name, options): (String, ClusterOptions),
    most: u32,
    archs: &[&str],
) -> Result<(PreparedClass, Readiness), RunError> {
    let TargetUri::StorageClass(class_name) = &options.target else {
        let cause = VolumeProblem::NotAClass;
        return Err(RunError::unusable_target(name, cause.into()));
    };
    let class = find_class(&facts, class_name).cloned();
    let class = class.as_ref();
    if class.is_some_and(|class| class.provisioner == STATIC_PROVISIONER) {
        let cause = VolumeProblem::StaticClass;
        return Err(RunError::unusable_target(name, cause.into()));
    }
    // Volumes of the run are removed also if the class retains volumes.
    for class in facts.classes.iter_mut().flatten() {
        class.reclaim_policy = None;
    }
    let judged_options = ClusterOptions {
        pods: Some(Pods {
            count: Some(most),
            placement: PodPlacement::Any,
            shared: false,
            checks_shared_file: false,
        }),
        ..options.clone()
    };
    let ready = facts.judge(&judged_options, archs)?;
    // If this user may not read the class, its claims are not awaited before their pods exist.
    let binds_late = class
        .is_none_or(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
    let prepared = PreparedClass {
        class: LifecycleClass {
            name,
            provisioner: class.map(|class| class.provisioner.clone()),
            binds_late,
            expands: class.map(|class| class.allow_volume_expansion == Some(true)),
        },
        image: ready.image.clone(),
        options: options.limited_to_archs(archs),
    };
    Ok((prepared, ready))
}

/// Creates the Job, waits for its pod, and begins to watch.
async fn start(
    objects: &RunObjects,
    prepared: &PreparedClass,
    observer: &mut SetupObserver<'_>,
) -> Result<(OwnerReference, LifecycleWatch, JoinHandle<()>), RunError> {
    let without_volume = PreparedClass {
        class: prepared.class.clone(),
        options: ClusterOptions {
            target: TargetUri::EmptyDir,
            claim_bytes: 1 << 20,
            ..prepared.options.clone()
        },
        image: prepared.image.clone(),
    };
    let labels = BTreeMap::new();
    let spec = spec_of_class(objects, &without_volume, &labels);
    let job = lifecycle_manifest::owner_job(&spec)?;
    let created = objects.jobs().create(&PostParams::default(), &job).await;
    let job = created.map_err(|error| {
        let name = objects.job.clone();
        api::failed(ClusterRequest::CreateJob { name }, &error)
    })?;
    let deadline = prepared.options.deadline;
    let lease = tokio::spawn(extend_lease(objects.clone(), Instant::now(), deadline));
    let watch = async {
        // The pod shows that image and nodes are usable, before a volume is made.
        objects.wait(1, prepared.options.timeout, observer).await?;
        let watch = async { Ok(LifecycleWatch::start(objects).await) };
        unless_interrupted(observer.interrupts, watch).await
    };
    match watch.await {
        Ok(watch) => Ok((lifecycle_manifest::owner_reference(&job), watch, lease)),
        Err(error) => {
            lease.abort();
            Err(error)
        }
    }
}

/// Extends the deadline of the Job until the task is aborted, up to `deadline`. The Job was created
/// at `begun` or later.
pub(crate) async fn extend_lease(objects: RunObjects, begun: Instant, deadline: Duration) {
    loop {
        let seconds = i64::try_from(begun.elapsed().as_secs()).unwrap_or(i64::MAX);
        let most = i64::try_from(deadline.as_secs()).unwrap_or(i64::MAX);
        // The cluster counts from the start of the Job, which is later than that of this task.
        let until = seconds.saturating_add(LEASE_S).min(most);
        let patch = serde_json::json!({"spec": {"activeDeadlineSeconds": until}});
        let (patch, plainly) = (Patch::Merge(patch), PatchParams::default());
        // The next extension follows before the deadline, so that one may fail.
        let _ = objects.jobs().patch(&objects.job, &plainly, &patch).await;
        tokio::time::sleep(LEASE_PERIOD).await;
    }
}

/// Returns the labels of a result: namespace and context.
pub(crate) fn labels(cluster: &KubeCluster) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    labels.insert("namespace".to_owned(), cluster.namespace.clone());
    if let Some(context) = &cluster.context {
        labels.insert("context".to_owned(), context.clone());
    }
    labels
}
