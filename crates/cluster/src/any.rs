//! One pod or several, for those to whom it makes no difference.

use crate::pods::PodsSession;
use crate::session::ClusterSession;
use iosonde_job::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::wire::Place;

/// Pods of one run.
pub enum AnySession<'w> {
    /// One.
    One(Box<ClusterSession<'w>>),
    /// Several.
    Several(Box<PodsSession<'w>>),
}

impl AnySession<'_> {
    /// Follows the run that goes on, or has ended, to its result.
    ///
    /// # Errors
    /// When a pod is lost, or has no run that can be taken up.
    pub fn attend(&mut self, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        match self {
            AnySession::One(session) => session.attend(observer),
            AnySession::Several(session) => session.attend(observer),
        }
    }

    /// The path that plans use: a directory of the volume, or its device. Several pods have each its own in its place.
    pub fn path(&self) -> &str {
        match self {
            AnySession::One(session) => session.path(),
            AnySession::Several(session) => session.path(),
        }
    }

    /// What is at [`path`](Self::path), in the first pod.
    ///
    /// # Errors
    /// When the volume cannot be used, or the agent does not answer.
    pub fn look(&mut self) -> Result<Place, RunError> {
        match self {
            AnySession::One(session) => session.look(),
            AnySession::Several(session) => session.look(),
        }
    }

    /// Where the pods are, in a few words.
    pub fn whereabouts(&self) -> String {
        match self {
            AnySession::One(session) => session.whereabouts(),
            AnySession::Several(session) => session.whereabouts(),
        }
    }

    /// Moves all files of a plan into the volume, where there is one. Returns what the user should know about it.
    pub fn adopt(&self, plan: &mut Plan) -> Vec<String> {
        match self {
            AnySession::One(session) => session.adopt(plan),
            AnySession::Several(session) => session.notes(plan),
        }
    }

    /// How many pods.
    pub fn pods(&self) -> usize {
        match self {
            AnySession::One(_) => 1,
            AnySession::Several(session) => session.count(),
        }
    }
}

impl Session for AnySession<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        match self {
            AnySession::One(session) => session.run(plan, observer),
            AnySession::Several(session) => session.run(plan, observer),
        }
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        match *self {
            AnySession::One(session) => session.close(),
            AnySession::Several(session) => session.close(),
        }
    }
}
