//! The phases that run on each kind of target.

use crate::probe_phase::ProbePhase;
use crate::study_target::StudyTargetKind;
use iosonde_job::plan::Direction;

impl StudyTargetKind {
    /// The phases that run on this kind of target.
    pub fn phases(&self) -> Vec<ProbePhase> {
        let reads = ProbePhase::MEASURED
            .into_iter()
            .filter(|phase| phase.direction() == Direction::Read);
        match self {
            // A write to a pool is durable when it is acknowledged, so a flush has nothing to do.
            StudyTargetKind::Pool { .. } => [ProbePhase::Layout]
                .into_iter()
                .chain(ProbePhase::MEASURED)
                .filter(|phase| *phase != ProbePhase::SyncedWrite)
                .collect(),
            _ if self.is_writable() => [ProbePhase::Layout]
                .into_iter()
                .chain(ProbePhase::MEASURED)
                .collect(),
            _ => reads.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_target_without_consent_is_read_only() {
        let kind = StudyTargetKind::Existing {
            bytes: 1 << 40,
            device: true,
            consent: false,
        };
        assert_eq!(
            kind.phases(),
            [
                ProbePhase::ReadLatency,
                ProbePhase::RandomRead,
                ProbePhase::SequentialRead
            ]
        );
    }
}
