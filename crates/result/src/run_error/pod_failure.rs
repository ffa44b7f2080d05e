//! [`PodFailure`]: the failure of an object of a remote run, such as a pod. The object did not
//! become ready, was lost during the run, or was not removed after it. `cause_text` has the texts
//! of causes, `remedy_text` those of actions. The module `diagnose` of the crate cluster finds the
//! cause of a pod that fails.

mod cause_text;
mod failure_condition;
mod failure_reasons;
mod remedy_text;

pub use failure_condition::FailureCondition;
pub use failure_reasons::{
    AwaitedStep, KeptResultProblem, MountFailure, PodOnNode, PodRefusal, PodWait, RemainingObject,
    RunningPods, SchedulingObstacle,
};
pub(crate) use remedy_text::removal_command;

use crate::known_cause::read_known_cause;
use crate::run_error::RunError;
use iosonde_job::errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Failure of an object of a remote run, such as a pod: the object and its condition as data, and
/// the texts that were made of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodFailure {
    /// The object, in words.
    what: String,
    /// The known cause, in words.
    cause: String,
    /// Action to take.
    remedy: String,
    /// The object. `None` in results of earlier versions, and if this version does not know it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "read_known_cause"
    )]
    object: Option<FailedObject>,
    /// The cause. `None` in results of earlier versions, and if this version does not know it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "read_known_cause"
    )]
    condition: Option<FailureCondition>,
    /// Files that the run may have left in a volume that outlives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leftovers: Option<LeftoverFiles>,
    /// Objects that the client kept on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<KeptObjects>,
    /// Directories of the node, if the one that a hostPath names does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    existing: Option<ExistingDirectories>,
}

impl PodFailure {
    /// Creates the failure of an object, with its texts.
    pub fn new(object: FailedObject, condition: FailureCondition) -> PodFailure {
        PodFailure {
            what: object.to_string(),
            cause: condition.to_string(),
            remedy: condition.remedy(&object),
            object: Some(object),
            condition: Some(condition),
            leftovers: None,
            kept: None,
            existing: None,
        }
    }

    /// Creates a failure of which only the texts are known, like those of earlier versions.
    pub fn from_texts(what: &str, cause: &str, remedy: &str) -> PodFailure {
        PodFailure {
            what: what.to_owned(),
            cause: cause.to_owned(),
            remedy: remedy.to_owned(),
            object: None,
            condition: None,
            leftovers: None,
            kept: None,
            existing: None,
        }
    }

    /// Returns the same failure of another object, whose name is known better.
    pub fn with_object(mut self, object: FailedObject) -> PodFailure {
        self.what = object.to_string();
        self.object = Some(object);
        self
    }

    /// Returns the same failure, with the files that the run may have left. A failure that has
    /// such files, such as one in a message of an agent, stays as it is.
    pub fn with_leftovers(mut self, leftovers: LeftoverFiles) -> PodFailure {
        if self.leftovers.is_some() {
            return self;
        }
        self.remedy = format!("{}; {leftovers}", self.remedy);
        self.leftovers = Some(leftovers);
        self
    }

    /// Returns the same failure, with the objects that were kept for an inspection.
    pub fn with_kept(mut self, kept: KeptObjects) -> PodFailure {
        if self.kept.is_some() {
            return self;
        }
        self.remedy = format!("{}; {kept}", self.remedy);
        self.kept = Some(kept);
        self
    }

    /// Returns the same failure, with `--keep` in its remedy if a kept pod explains the failure.
    /// The remedy of a command without this option must not name it.
    pub fn with_keep_offer(mut self) -> PodFailure {
        let condition = self.condition.as_ref();
        if let Some(command) = condition.and_then(FailureCondition::command_for_kept_pod) {
            self.remedy = format!("{}; --keep keeps the pod for `{command}`", self.remedy);
        }
        self
    }

    /// Returns the same failure, with directories that exist on the node.
    pub fn with_existing_directories(mut self, existing: ExistingDirectories) -> PodFailure {
        self.remedy = format!("{existing}; {}", self.remedy);
        self.existing = Some(existing);
        self
    }

    /// Returns the object, in words.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Returns the cause, in words.
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// Returns the action to take.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// Returns the object. `None` in results of versions that do not store or share its kind.
    pub fn object(&self) -> Option<&FailedObject> {
        self.object.as_ref()
    }

    /// Returns the cause. `None` in results of versions that do not store or share its kind.
    pub fn condition(&self) -> Option<&FailureCondition> {
        self.condition.as_ref()
    }
}

impl RunError {
    /// Creates the error of an object that did not become ready to run plans.
    pub fn not_ready(object: FailedObject, condition: FailureCondition) -> RunError {
        RunError::NotReady(Box::new(PodFailure::new(object, condition)))
    }

    /// Creates the error of an object that was lost during a run.
    pub fn lost(object: FailedObject, condition: FailureCondition) -> RunError {
        RunError::Lost(Box::new(PodFailure::new(object, condition)))
    }

    /// Creates the error of an object that is not removed yet.
    pub fn not_removed(object: FailedObject, condition: FailureCondition) -> RunError {
        RunError::NotRemoved(Box::new(PodFailure::new(object, condition)))
    }
}

/// Object of a remote run that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailedObject {
    /// A pod. The only one of a run needs no name.
    Pod {
        /// Its name.
        name: Option<String>,
    },
    /// A pod of several whose name is not known.
    AnyPod {
        /// The Job of the pods.
        job: Option<String>,
    },
    /// The agent in a pod.
    Agent,
    /// The run.
    Run,
    /// The connection to a pod.
    Connection {
        /// The pod. The only one of a run needs no name.
        pod: Option<String>,
    },
    /// The Job of a run, which owns all its other objects.
    Job {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A namespace.
    Namespace {
        /// Its name.
        name: String,
        /// Whether a run created it.
        is_made_for_runs: bool,
    },
    /// The objects that earlier runs have left.
    Leftovers,
}

impl FailedObject {
    /// Returns the only pod of a run.
    pub fn only_pod() -> FailedObject {
        FailedObject::Pod { name: None }
    }

    /// Returns one pod of several.
    pub fn named_pod(name: &str) -> FailedObject {
        FailedObject::Pod {
            name: Some(name.to_owned()),
        }
    }
}

/// Files of a run in a volume that outlives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftoverFiles {
    /// The volume, in words.
    pub volume: String,
    /// Id of the run, which is part of the names of its files.
    pub run: String,
}

/// Directories of a node that a hostPath can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExistingDirectories {
    /// Name of the node.
    pub node: String,
    /// Directories in the nearest existing parent of the missing one.
    pub directories: Vec<String>,
    /// Directories where file systems are mounted.
    pub mounts: Vec<String>,
}

impl ExistingDirectories {
    /// Whether no directory is known.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.mounts.is_empty()
    }
}

/// Whether a system call was refused for lack of permission.
fn is_access_denied(error: &RunError) -> bool {
    matches!(error.errno(), Some(errno::EACCES | errno::EPERM))
}

/// Objects of a failed run that the client kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptObjects {
    /// Namespace of the run.
    pub namespace: String,
    /// The Job, which owns all objects of the run.
    pub job: String,
}

#[cfg(test)]
mod tests;
