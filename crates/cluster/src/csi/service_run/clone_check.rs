//! Clones, and the check that a clone and its source are separate volumes.
//!
//! A provisioner that gives all claims one directory makes a clone whose data are right. Different
//! data are therefore written to source and clone, and both are read again.

use super::{ServedAt, ServiceRound, ServiceRun, ServicesStopped};
use crate::csi::object_wait::WaitEnd;
use crate::csi::service_objects::{ClaimSource, judge_running};
use crate::csi::written_data::{sum_script, write_script};
use crate::lifecycle::lifecycle_manifest::pod_name;
use iosonde_result::data_service::{DataCheck, DataService, ServiceOutcome};

/// Checksums of the data of the source and of its clone.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SumsOfBoth {
    source: String,
    clone: String,
}

impl ServiceRun {
    /// Measures a clone, and removes it. Returns the checksum of the source's data after it.
    /// `None`: they cannot be written.
    pub(super) async fn measure_clone(
        &self,
        round: ServiceRound<'_>,
        expected: &str,
    ) -> Result<Option<String>, ServicesStopped> {
        let number = round.first_object + 1;
        let mut written = None;
        let cloned = self.clone_volume(round, number, expected, &mut written);
        self.use_service(round, DataService::Clone, cloned).await?;
        self.remove_volume(round, number).await?;
        match written {
            Some(written) => Ok(Some(written)),
            // A check that has not ended may have left other data.
            None => self.write_data(round).await,
        }
    }

    /// Makes a clone, reads its data, and checks that it shares none with its source. `written`
    /// gets the checksum of the new data of the source, if the check succeeds.
    pub(super) async fn clone_volume(
        &self,
        round: ServiceRound<'_>,
        number: u32,
        expected: &str,
        written: &mut Option<String>,
    ) -> Result<ServedAt, WaitEnd> {
        let source = (ClaimSource::Claim(&self.source), number);
        let (outcome, ended) = self.read_new_volume(round, source, expected).await?;
        let ServiceOutcome::Measured {
            took_ns,
            read_ns,
            data: Some(DataCheck::Right),
        } = outcome
        else {
            return Ok((outcome, ended));
        };
        // The application's latencies after the service must not include these writes.
        self.pause(self.options.window).await?;
        let pod = pod_name(&self.spec(), number);
        let check = self.check_separate_data(round, &pod, written).await?;
        let cloned = ServiceOutcome::Measured {
            took_ns,
            read_ns,
            data: Some(check),
        };
        Ok((cloned, ended))
    }

    /// Writes different data to the source and to the clone of a pod, and reads both.
    async fn check_separate_data(
        &self,
        round: ServiceRound<'_>,
        pod: &str,
        written: &mut Option<String>,
    ) -> Result<DataCheck, WaitEnd> {
        round.show("different data in volume and clone");
        let wait = self.begin_wait(&[pod]);
        wait.wait(&self.objects.pods(), pod, judge_running).await?;
        let run = &self.objects.id;
        let (write, read) = (write_script(run, round.data_bytes), sum_script(run));
        let source = match self.run_script(&write).await? {
            Ok(sum) => sum,
            Err(cause) => return Ok(DataCheck::NotWritten { cause }),
        };
        let clone = match self.run_script_in(pod, &write).await? {
            Ok(sum) => sum,
            Err(cause) => return Ok(DataCheck::NotWritten { cause }),
        };
        let found_in_source = self.run_script(&read).await?;
        let found_in_clone = self.run_script_in(pod, &read).await?;
        let sums = SumsOfBoth { source, clone };
        let found = match (found_in_source, found_in_clone) {
            (Ok(source), Ok(clone)) => SumsOfBoth { source, clone },
            (Err(cause), _) | (_, Err(cause)) => return Ok(DataCheck::NotRead { cause }),
        };
        let check = compare(&sums, &found);
        if check == DataCheck::Right {
            *written = Some(sums.source);
        }
        Ok(check)
    }
}

/// Compares what was written to source and clone with what was read from them.
fn compare(written: &SumsOfBoth, found: &SumsOfBoth) -> DataCheck {
    debug_assert_ne!(written.source, written.clone, "the data are random");
    let pairs = [
        (&written.source, &found.source, &written.clone),
        (&written.clone, &found.clone, &written.source),
    ];
    match pairs.into_iter().find(|(ours, found, _)| ours != found) {
        None => DataCheck::Right,
        Some((ours, found, other)) if found == other => DataCheck::Shared {
            written: ours.clone(),
            found: found.clone(),
        },
        Some((ours, found, _)) => DataCheck::Wrong {
            expected: ours.clone(),
            found: found.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(source: &str, clone: &str) -> SumsOfBoth {
        SumsOfBoth {
            source: source.to_owned(),
            clone: clone.to_owned(),
        }
    }

    #[test]
    fn volumes_in_one_directory_share_their_data() {
        let written = sums("aa", "bb");
        assert_eq!(compare(&written, &sums("aa", "bb")), DataCheck::Right);
        // The clone was written last.
        let shared = DataCheck::Shared {
            written: "aa".to_owned(),
            found: "bb".to_owned(),
        };
        assert_eq!(compare(&written, &sums("bb", "bb")), shared);
        let lost = DataCheck::Shared {
            written: "bb".to_owned(),
            found: "aa".to_owned(),
        };
        assert_eq!(compare(&written, &sums("aa", "aa")), lost);
        let wrong = DataCheck::Wrong {
            expected: "bb".to_owned(),
            found: "cc".to_owned(),
        };
        assert_eq!(compare(&written, &sums("aa", "cc")), wrong);
    }
}
