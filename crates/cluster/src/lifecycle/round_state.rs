//! [`RoundState`]: the volumes of a round and what the watches have reported about them. Pure.

use super::observed_change::{
    ObservedAttachment, ObservedChange, ObservedClaim, ObservedVolume, ObservedVolumePod,
    ObservedWarning, WriteReport,
};
use super::volume_timeline::{StageRules, VolumeMoment, VolumeTimeline};
use iosonde_result::volume_lifecycle::{LifecycleStage, StageRecord};
use std::collections::BTreeSet;

/// Largest difference between a duration and that of the server's times, which are whole seconds.
const SERVER_TIME_ERROR_S: f64 = 2.0;

/// Bytes by which claims are expanded: the smallest step that all drivers offer.
const EXPANSION_BYTES: u64 = 1 << 30;

/// A part of a round: one request for each volume, and the wait for its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoundPhase {
    /// Creates the claims. Without late binding, waits until they are bound.
    Claim,
    /// Creates the pods, and waits for the first write.
    Start,
    /// Requests a larger size.
    Expand,
    /// Deletes the pods.
    Stop,
    /// Deletes the claims.
    Delete,
}

impl RoundPhase {
    /// All phases, in their order.
    pub(super) const ALL: [RoundPhase; 5] = [
        RoundPhase::Claim,
        RoundPhase::Start,
        RoundPhase::Expand,
        RoundPhase::Stop,
        RoundPhase::Delete,
    ];

    /// Returns what the phase waits for.
    pub(super) fn words(self) -> &'static str {
        match self {
            RoundPhase::Claim => "bound",
            RoundPhase::Start => "written",
            RoundPhase::Expand => "expanded",
            RoundPhase::Stop => "detached",
            RoundPhase::Delete => "deleted",
        }
    }

    /// Whether the phase removes objects, also those of volumes that have failed.
    pub(super) fn is_removal(self) -> bool {
        matches!(self, RoundPhase::Stop | RoundPhase::Delete)
    }

    /// Returns the moment of the phase's request.
    pub(super) fn request(self) -> VolumeMoment {
        match self {
            RoundPhase::Claim => VolumeMoment::ClaimRequested,
            RoundPhase::Start => VolumeMoment::PodRequested,
            RoundPhase::Expand => VolumeMoment::ExpandRequested,
            RoundPhase::Stop => VolumeMoment::PodDeletionRequested,
            RoundPhase::Delete => VolumeMoment::ClaimDeletionRequested,
        }
    }
}

/// A volume of a round.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundVolume {
    /// Name of the pod.
    pub(super) pod: String,
    /// Name of the claim.
    pub(super) claim: String,
    /// Name of the volume, once it is seen.
    pub(super) volume: Option<String>,
    /// Whether the volume stays when its claim is deleted.
    pub(super) is_retained: bool,
    /// Capacity in bytes before the expansion, which may be more than was requested.
    pub(super) capacity_bytes: u64,
    pub(super) timeline: VolumeTimeline,
    /// The last warning about claim, pod or volume in the current phase.
    pub(super) warning: Option<String>,
    /// Creation of claim and volume by the clock of the server, in whole seconds.
    pub(super) claim_created_s: Option<i64>,
    pub(super) volume_created_s: Option<i64>,
}

impl RoundVolume {
    /// Whether an object belongs to this volume.
    fn has_object(&self, name: &str) -> bool {
        name == self.claim || name == self.pod || self.volume.as_deref() == Some(name)
    }

    /// Replaces the names of the volume's objects, so that equal causes of volumes have equal text.
    pub(super) fn without_names(&self, text: &str) -> String {
        // The name of the claim begins with that of the pod.
        let text = text.replace(&self.claim, "the claim");
        let text = text.replace(&self.pod, "the pod");
        match &self.volume {
            Some(volume) => text.replace(volume, "the volume"),
            None => text,
        }
    }
}

/// The volumes of a round.
#[derive(Debug, Clone)]
pub(super) struct RoundState {
    pub(super) volumes: Vec<RoundVolume>,
    pub(super) rules: StageRules,
    /// Namespace of the claims.
    pub(super) namespace: String,
    /// Requested size of each claim in bytes.
    pub(super) claim_bytes: u64,
    /// Warnings that have arrived in the current phase, and in earlier ones. A watch reports all of
    /// them with each change.
    pub(super) warnings: BTreeSet<ObservedWarning>,
    pub(super) past_warnings: BTreeSet<ObservedWarning>,
}

impl RoundState {
    /// Applies a change that arrived at this time. Returns whether a volume has made progress.
    pub(super) fn apply(&mut self, change: &ObservedChange, at_ns: u64) -> bool {
        if let ObservedChange::Warnings(warnings) = change {
            self.apply_warnings(warnings);
        }
        let mut is_progress = false;
        for index in 0..self.volumes.len() {
            is_progress |= match change {
                ObservedChange::Claims(claims) => self.apply_claim(index, claims, at_ns),
                ObservedChange::Pods(pods) => self.apply_pod(index, pods, at_ns),
                ObservedChange::Volumes(volumes) => self.apply_volume(index, volumes, at_ns),
                ObservedChange::Attachments(all) => self.apply_attachment(index, all, at_ns),
                ObservedChange::Warnings(_) => false,
            };
        }
        is_progress
    }

    fn apply_claim(&mut self, index: usize, claims: &[ObservedClaim], at_ns: u64) -> bool {
        let expanded_bytes = self.expanded_bytes(index);
        let volume = &mut self.volumes[index];
        let timeline = &mut volume.timeline;
        let Some(claim) = claims.iter().find(|claim| claim.name == volume.claim) else {
            let is_deleting = timeline.has(VolumeMoment::ClaimDeletionRequested);
            return is_deleting && timeline.record(VolumeMoment::ClaimGone, at_ns);
        };
        volume.claim_created_s = claim.created_s;
        let is_expanding = timeline.has(VolumeMoment::ExpandRequested);
        if !is_expanding {
            volume.capacity_bytes = claim.capacity_bytes;
        }
        let is_expanded = is_expanding && claim.capacity_bytes >= expanded_bytes;
        record_all(
            timeline,
            &[
                (claim.has_node, VolumeMoment::NodeSelected),
                (claim.is_bound, VolumeMoment::ClaimBound),
                (is_expanded, VolumeMoment::Expanded),
            ],
            at_ns,
        )
    }

    fn apply_pod(&mut self, index: usize, pods: &[ObservedVolumePod], at_ns: u64) -> bool {
        let volume = &mut self.volumes[index];
        let timeline = &mut volume.timeline;
        let Some(pod) = pods.iter().find(|pod| pod.name == volume.pod) else {
            let is_deleting = timeline.has(VolumeMoment::PodDeletionRequested);
            return is_deleting && timeline.record(VolumeMoment::PodGone, at_ns);
        };
        let is_progress = record_all(
            timeline,
            &[
                (pod.is_scheduled, VolumeMoment::PodScheduled),
                (pod.is_mounted, VolumeMoment::Mounted),
            ],
            at_ns,
        );
        match &pod.write {
            Some(WriteReport::Took(took_ns)) => {
                timeline.record_write(*took_ns, at_ns) || is_progress
            }
            Some(WriteReport::Failed(cause)) if !timeline.has_failed() => {
                let cause = match cause.is_empty() {
                    true => "the command ended without output".to_owned(),
                    false => cause.clone(),
                };
                timeline.fail(LifecycleStage::FirstWrite, cause);
                true
            }
            _ => is_progress,
        }
    }

    fn apply_volume(&mut self, index: usize, volumes: &[ObservedVolume], at_ns: u64) -> bool {
        let namespace = self.namespace.clone();
        let volume = &mut self.volumes[index];
        let is_it = |seen: &&ObservedVolume| {
            seen.claim == volume.claim && seen.claim_namespace == namespace
        };
        match volumes.iter().find(is_it) {
            Some(seen) => {
                let (name, is_retained) = (seen.name.clone(), seen.is_retained);
                volume.volume.get_or_insert(name);
                volume.is_retained = is_retained;
                volume.volume_created_s = seen.created_s;
                volume.timeline.record(VolumeMoment::VolumeSeen, at_ns)
            }
            None => {
                let timeline = &mut volume.timeline;
                let is_gone = timeline.has(VolumeMoment::VolumeSeen)
                    && timeline.has(VolumeMoment::ClaimDeletionRequested);
                is_gone && timeline.record(VolumeMoment::VolumeGone, at_ns)
            }
        }
    }

    fn apply_attachment(&mut self, index: usize, all: &[ObservedAttachment], at_ns: u64) -> bool {
        let volume = &mut self.volumes[index];
        let Some(name) = &volume.volume else {
            return false;
        };
        let timeline = &mut volume.timeline;
        match all.iter().find(|attachment| attachment.volume == *name) {
            Some(seen) => record_all(
                timeline,
                &[
                    (true, VolumeMoment::AttachmentSeen),
                    (seen.is_attached, VolumeMoment::Attached),
                ],
                at_ns,
            ),
            None => {
                let is_gone = timeline.has(VolumeMoment::Attached)
                    && timeline.has(VolumeMoment::PodDeletionRequested);
                is_gone && timeline.record(VolumeMoment::Detached, at_ns)
            }
        }
    }

    /// Applies the warnings of the current phase. Those of an earlier one explain nothing in it.
    fn apply_warnings(&mut self, warnings: &[ObservedWarning]) {
        let past = &self.past_warnings;
        let is_new = |warning: &&ObservedWarning| !past.contains(*warning);
        let new: Vec<&ObservedWarning> = warnings.iter().filter(is_new).collect();
        for volume in &mut self.volumes {
            // The last one is the newest.
            let last = new
                .iter()
                .rev()
                .find(|warning| volume.has_object(&warning.object));
            if let Some(last) = last {
                volume.warning = Some(volume.without_names(&last.message));
            }
        }
        self.warnings.extend(new.into_iter().cloned());
    }

    /// Returns the size in bytes to which the claim of a volume is expanded.
    pub(super) fn expanded_bytes(&self, index: usize) -> u64 {
        let present_bytes = self.claim_bytes.max(self.volumes[index].capacity_bytes);
        present_bytes.saturating_add(EXPANSION_BYTES)
    }

    /// Returns the volumes that get the request of a phase.
    pub(super) fn requested(&self, phase: RoundPhase) -> Vec<usize> {
        let is_requested = |volume: &RoundVolume| {
            let timeline = &volume.timeline;
            match phase {
                RoundPhase::Claim => true,
                RoundPhase::Start => !timeline.has_failed(),
                RoundPhase::Expand => self.rules.expands == Some(true) && !timeline.has_failed(),
                RoundPhase::Stop => timeline.has(VolumeMoment::PodRequested),
                RoundPhase::Delete => timeline.has(VolumeMoment::ClaimRequested),
            }
        };
        let all = self.volumes.iter().enumerate();
        let requested = all.filter(|(_, volume)| is_requested(volume));
        requested.map(|(index, _)| index).collect()
    }

    /// Returns the volumes whose phase has not ended. A volume that has failed is only waited for
    /// while it is removed.
    pub(super) fn waiting(&self, phase: RoundPhase) -> Vec<usize> {
        let is_waiting = |index: &usize| {
            let timeline = &self.volumes[*index].timeline;
            let is_wanted = phase.is_removal() || !timeline.has_failed();
            is_wanted && timeline.has(phase.request()) && !self.has_ended(*index, phase)
        };
        let requested = self.requested(phase).into_iter();
        requested.filter(is_waiting).collect()
    }

    fn has_ended(&self, index: usize, phase: RoundPhase) -> bool {
        let timeline = &self.volumes[index].timeline;
        let has = |moment| timeline.has(moment);
        match phase {
            RoundPhase::Claim => self.rules.binds_late || has(VolumeMoment::ClaimBound),
            RoundPhase::Start => has(VolumeMoment::Written),
            RoundPhase::Expand => has(VolumeMoment::Expanded),
            RoundPhase::Stop => {
                has(VolumeMoment::PodGone)
                    && (has(VolumeMoment::Detached) || !has(VolumeMoment::Attached))
            }
            RoundPhase::Delete => {
                has(VolumeMoment::ClaimGone)
                    && (has(VolumeMoment::VolumeGone) || !has(VolumeMoment::VolumeSeen))
            }
        }
    }

    /// Fails a volume whose phase has not ended. The cause is its last warning, or `otherwise`.
    pub(super) fn fail_waiting(&mut self, index: usize, phase: RoundPhase, otherwise: &str) {
        let rules = self.rules;
        let volume = &mut self.volumes[index];
        let stage = match phase {
            RoundPhase::Claim | RoundPhase::Start => volume.timeline.first_open_stage(&rules),
            RoundPhase::Expand => LifecycleStage::Expand,
            RoundPhase::Stop => LifecycleStage::Detach,
            RoundPhase::Delete => LifecycleStage::Delete,
        };
        let cause = match &volume.warning {
            Some(warning) => format!("{otherwise}: {warning}"),
            None if stage == LifecycleStage::Provision => {
                format!("{otherwise}, without a warning: the provisioner may not run")
            }
            None => otherwise.to_owned(),
        };
        volume.timeline.fail(stage, cause);
    }

    /// Forgets the warnings of the previous phase.
    pub(super) fn begin_phase(&mut self) {
        self.past_warnings.append(&mut self.warnings);
        for volume in &mut self.volumes {
            volume.warning = None;
        }
    }

    /// Returns how many provisions the creation times of the server contradict. They have whole
    /// seconds, and the provision of a late binding class begins after the creation of the claim.
    pub(super) fn contradicted_provisions(&self) -> usize {
        if self.rules.binds_late {
            return 0;
        }
        let is_contradicted = |volume: &&RoundVolume| {
            let timeline = &volume.timeline;
            let requested_ns = timeline.at_ns(VolumeMoment::ClaimRequested);
            let seen_ns = timeline.at_ns(VolumeMoment::VolumeSeen);
            let created_s = volume.claim_created_s.zip(volume.volume_created_s);
            match (requested_ns.zip(seen_ns), created_s) {
                (Some((begun_ns, ended_ns)), Some((claim_s, volume_s))) => {
                    let measured_s = ended_ns.saturating_sub(begun_ns) as f64 / 1e9;
                    let of_server_s = volume_s.saturating_sub(claim_s) as f64;
                    (measured_s - of_server_s).abs() > SERVER_TIME_ERROR_S
                }
                _ => false,
            }
        };
        self.volumes.iter().filter(is_contradicted).count()
    }

    /// Returns the stages of each volume.
    pub(super) fn stages(&self) -> Vec<Vec<StageRecord>> {
        let volumes = self.volumes.iter();
        let stages = volumes.map(|volume| volume.timeline.stages(&self.rules));
        stages.collect()
    }
}

/// Records the moments whose condition holds. Returns whether one is new.
fn record_all(timeline: &mut VolumeTimeline, moments: &[(bool, VolumeMoment)], at_ns: u64) -> bool {
    let mut is_new = false;
    for (holds, moment) in moments {
        if *holds {
            is_new |= timeline.record(*moment, at_ns);
        }
    }
    is_new
}

#[cfg(test)]
mod tests;
