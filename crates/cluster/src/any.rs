//! [`AnySession`]: a session of one pod or of several.

use crate::pods::PodsSession;
use crate::session::ClusterSession;
use iosonde_job::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use iosonde_result::wire::Place;

/// Session of the pods of one run.
pub enum AnySession<'w> {
    /// One pod.
    One(Box<ClusterSession<'w>>),
    /// Several pods.
    Several(Box<PodsSession<'w>>),
}

impl AnySession<'_> {
    /// Follows the run in the pods, running or finished, and returns its result.
    ///
    /// # Errors
    /// If a pod is lost, or has no run that can be followed.
    pub fn attend(&mut self, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        match self {
            AnySession::One(session) => session.attend(observer),
            AnySession::Several(session) => session.attend(observer),
        }
    }

    /// Returns the path that plans use: directory or device. Each of several pods has its own.
    pub fn path(&self) -> &str {
        match self {
            AnySession::One(session) => session.path(),
            AnySession::Several(session) => session.path(),
        }
    }

    /// Inspects [`path`](Self::path) in the first pod.
    ///
    /// # Errors
    /// If the volume cannot be used, or the agent does not answer.
    pub fn look(&mut self) -> Result<Place, RunError> {
        match self {
            AnySession::One(session) => session.look(),
            AnySession::Several(session) => session.look(),
        }
    }

    /// Returns a short description of the pods and their nodes.
    pub fn whereabouts(&self) -> String {
        match self {
            AnySession::One(session) => session.whereabouts(),
            AnySession::Several(session) => session.whereabouts(),
        }
    }

    /// Moves all files of a plan into the volume. Returns notes for the user.
    pub fn adopt(&self, plan: &mut Plan) -> Vec<String> {
        match self {
            AnySession::One(session) => session.adopt(plan),
            AnySession::Several(session) => session.notes(plan),
        }
    }

    /// Returns the number of pods.
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
