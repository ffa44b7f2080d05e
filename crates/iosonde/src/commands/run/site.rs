//! Where the steps of a suite run: on a target of this machine, or in a pod of a cluster that is kept while the suite lasts.

use super::place::Ground;
use crate::args::RunArgs;
use crate::commands::cluster;
use crate::commands::places::Tell;
use crate::commands::target::{Opened, check};
use crate::failure::Failure;
use iosonde_cluster::{AnySession, ClusterOptions, Watch};
use iosonde_engine::runner::{HeldPaths, LocalSession};
use iosonde_job::Plan;
use iosonde_machine::identify::identify;
use iosonde_result::session::{RunError, Session};
use iosonde_study::probe::{Budget, ProbeTarget, TargetKind};
use std::path::{Path, PathBuf};

/// A target that steps can be run on. What was made for it is removed when it is closed or dropped.
pub(super) enum Site<'a> {
    /// On this machine; its session is that of all such targets.
    Here(Ground),
    /// In a cluster.
    Pod(Box<Pod<'a>>),
}

/// A pod with the target's volume.
pub(super) struct Pod<'a> {
    name: String,
    session: AnySession<'a>,
    options: ClusterOptions,
}

/// A target as a study takes it.
pub(super) struct Studied {
    pub(super) target: ProbeTarget,
    /// How much of it is used where nothing is said; `None` is what the study takes.
    pub(super) size_bytes: Option<u64>,
    /// Made for this study alone.
    opened: Option<Opened>,
}

impl Studied {
    /// Has plans reach the working file by its descriptor.
    pub(super) fn note_in(&self, held: &HeldPaths) {
        if let Some(opened) = &self.opened {
            opened.note_in(held);
        }
    }
}

impl<'a> Site<'a> {
    /// Makes the scratch directory, or the pod.
    pub(super) fn open(
        name: &str,
        args: &RunArgs,
        interrupts: &'a (dyn Fn() -> u32 + Send + Sync),
        tell: &'a mut Tell,
        note: &mut dyn FnMut(&str),
    ) -> Result<Site<'a>, Failure> {
        let Some((target, within)) = cluster::target_within(name, &args.cluster)? else {
            let kind = check(
                name,
                &args.written.consent.allow_overwrite,
                &args.ceph.access(),
            )?;
            return Ok(Site::Here(Ground::open(name, kind, note)?));
        };
        let options = cluster::options_of_pods(target, &within, None)?;
        let consent = &args.written.consent.allow_overwrite;
        let options = cluster::with_consent(options, name, consent);
        let watch = Watch {
            tell: tell.as_mut(),
            interrupts,
        };
        let session = cluster::open_unwatched(&options, watch)?;
        note(&format!("{name}: {}", session.whereabouts()));
        Ok(Site::Pod(Box::new(Pod {
            name: name.to_owned(),
            session,
            options,
        })))
    }

    /// What nobody has agreed to lose.
    pub(super) fn only_read(&self) -> Option<PathBuf> {
        match self {
            Site::Here(ground) => ground.only_read(),
            Site::Pod(_) => None,
        }
    }

    /// What jobs that are put on it may touch here.
    pub(super) fn permitted(&self) -> Vec<String> {
        match self {
            Site::Here(ground) => ground.permitted(),
            Site::Pod(_) => Vec::new(),
        }
    }

    /// Puts the jobs of a plan on the target; what they must not do there is an error. Returns what the user should know.
    pub(super) fn put(&self, plan: &mut Plan) -> Result<Vec<String>, Failure> {
        match self {
            Site::Here(ground) => Ok(ground.put(plan)?),
            Site::Pod(pod) => {
                cluster::refuse_what_stays_behind(plan)?;
                Ok(pod.session.adopt(plan))
            }
        }
    }

    /// Has plans reach what was made for them by its descriptor.
    pub(super) fn note_in(&self, held: &HeldPaths) {
        if let Site::Here(ground) = self {
            ground.note_in(held);
        }
    }

    /// Makes the target ready for a study.
    pub(super) fn studied(
        &mut self,
        name: &str,
        args: &RunArgs,
        note: &mut dyn FnMut(&str),
    ) -> Result<Studied, Failure> {
        match self {
            Site::Here(_) => {
                let opened = Opened::open(
                    name,
                    &args.written.consent.allow_overwrite,
                    &args.ceph.access(),
                    note,
                )?;
                Ok(Studied {
                    target: opened.target.clone(),
                    size_bytes: None,
                    opened: Some(opened),
                })
            }
            Site::Pod(pod) => {
                let found = pod.session.look()?;
                let (session, options) = (&pod.session, &pod.options);
                Ok(Studied {
                    target: cluster::probe_target(&pod.name, session, found, options),
                    size_bytes: cluster::working_set(options, 1, Budget::NORMAL.size_bytes),
                    opened: None,
                })
            }
        }
    }

    /// What runs its plans.
    pub(super) fn session<'s>(&'s mut self, here: &'s mut LocalSession) -> &'s mut dyn Session
    where
        'a: 's,
    {
        match self {
            Site::Here(_) => here,
            Site::Pod(pod) => &mut pod.session,
        }
    }

    /// Removes what was made.
    pub(super) fn close(self) -> Result<(), RunError> {
        match self {
            Site::Here(_) => Ok(()),
            Site::Pod(pod) => Box::new(pod.session).close(),
        }
    }
}

/// A target that could be measured.
pub(super) struct Checked {
    /// What should be known before.
    pub(super) notes: Vec<String>,
    /// Size of the volume, as far as it is known.
    pub(super) volume_bytes: Option<u64>,
}

/// Says whether a target could be measured, on this machine or in its cluster, without making or changing anything.
pub(super) fn checked(name: &str, args: &RunArgs) -> Result<Checked, Failure> {
    if let Some((target, within)) = cluster::target_within(name, &args.cluster)? {
        let found = cluster::check(target, &within, None, &|| 0)?;
        let notes = found.notes.iter().map(|note| format!("{name}: {note}"));
        return Ok(Checked {
            notes: notes.collect(),
            volume_bytes: found.volume_bytes,
        });
    }
    let kind = check(
        name,
        &args.written.consent.allow_overwrite,
        &args.ceph.access(),
    )?;
    let is_path = !name.contains("://");
    let volume_bytes = match kind {
        TargetKind::Directory { .. } | TargetKind::Existing { .. } if is_path => {
            let target = identify(Path::new(name)).ok();
            target.and_then(|target| target.volume_bytes())
        }
        TargetKind::Existing { bytes, .. } => Some(bytes),
        _ => None,
    };
    Ok(Checked {
        notes: Vec::new(),
        volume_bytes,
    })
}
