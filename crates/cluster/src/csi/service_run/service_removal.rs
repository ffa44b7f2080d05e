//! Removal of what a round has made, before the next service is measured.

use super::{ServiceMessage, ServiceRound, ServiceRun, ServicesStopped};
use crate::api;
use crate::csi::service_objects::snapshots;
use crate::lifecycle::lifecycle_manifest::{claim_name, pod_name};
use kube::api::{Api, DeleteParams};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Delay between two reads of an object that is being removed.
const REMOVAL_PERIOD: Duration = Duration::from_millis(500);

impl ServiceRun {
    /// Removes a snapshot. Waits until one that was taken is gone: the next service must not
    /// include its removal.
    pub(super) async fn remove_snapshot(
        &self,
        round: ServiceRound<'_>,
        name: &str,
        is_taken: bool,
    ) -> Result<(), ServicesStopped> {
        round.show("the removal of the snapshot");
        let snapshots = snapshots(&self.objects.cluster);
        // A snapshot that stays is removed with the session.
        let _ = snapshots.delete(name, &DeleteParams::default()).await;
        match is_taken {
            true => self.wait_until_gone(round, &snapshots, name).await,
            false => Ok(()),
        }
    }

    /// Removes a new volume and its pod, and waits until the claim is gone.
    pub(super) async fn remove_volume(
        &self,
        round: ServiceRound<'_>,
        number: u32,
    ) -> Result<(), ServicesStopped> {
        round.show("the removal of the new volume");
        let spec = self.spec();
        let (pod, claim) = (pod_name(&spec, number), claim_name(&spec, number));
        let (pods, claims) = (self.objects.pods(), self.claims());
        let at_once = DeleteParams::default().grace_period(0);
        // Objects that stay are removed with the session.
        let _ = pods.delete(&pod, &at_once).await;
        let _ = claims.delete(&claim, &DeleteParams::default()).await;
        self.wait_until_gone(round, &claims, &claim).await
    }

    async fn wait_until_gone<K>(
        &self,
        round: ServiceRound<'_>,
        objects: &Api<K>,
        name: &str,
    ) -> Result<(), ServicesStopped>
    where
        K: Clone + DeserializeOwned + Debug + Send + Sync,
    {
        let begun = Instant::now();
        while begun.elapsed() < self.cluster.timeout {
            match objects.get_opt(name).await {
                Ok(None) => return Ok(()),
                Err(error) if !api::is_away(&error) => return Ok(()),
                _ => self.pause(REMOVAL_PERIOD).await?,
            }
        }
        let seconds = begun.elapsed().as_secs();
        let note = format!("{name} was not removed after {seconds} s");
        let _ = round.tell.send(ServiceMessage::Note(note));
        Ok(())
    }
}
