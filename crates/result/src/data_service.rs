//! Data services of a storage class: snapshot, restore, clone and expansion of a volume with known
//! contents, and the latencies of an application that runs meanwhile.

use crate::histogram::Histogram;
use crate::run_error::RunError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A data service, in the order in which they are measured.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum DataService {
    /// From the request of the snapshot until it is ready to use.
    Snapshot,
    /// From the request of a claim with the snapshot as source until a pod runs with the volume.
    Restore,
    /// From the request of a claim with the volume as source until a pod runs with the clone.
    Clone,
    /// From the request of a larger size until the claim has that capacity.
    Expand,
}

impl DataService {
    /// All services, in their order.
    pub const ALL: [DataService; 4] = [
        DataService::Snapshot,
        DataService::Restore,
        DataService::Clone,
        DataService::Expand,
    ];

    /// Returns the name of the service for people.
    pub fn title(self) -> &'static str {
        match self {
            DataService::Snapshot => "snapshot",
            DataService::Restore => "restore",
            DataService::Clone => "clone",
            DataService::Expand => "expand",
        }
    }
}

/// Outcome of one use of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceOutcome {
    /// The service has ended.
    Measured {
        /// Duration of the service in nanoseconds.
        took_ns: u64,
        /// Duration of the first read of the data in the new volume, in nanoseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_ns: Option<u64>,
        /// Comparison of the data with their checksum. `None`: the service makes no volume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<DataCheck>,
    },
    /// The class does not have the service.
    Absent(ServiceAbsence),
    /// The service has failed, or has not ended before the timeout.
    Failed {
        /// Cause, as the cluster reports it.
        cause: String,
    },
}

/// Comparison of data with the checksum from before the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataCheck {
    /// The data are the same.
    Right,
    /// The data differ.
    Wrong {
        /// SHA-256 of the data from before the service.
        expected: String,
        /// SHA-256 of the data that were read.
        found: String,
    },
    /// The data could not be read.
    NotRead {
        /// Output of the command that read them.
        cause: String,
    },
    /// The volume and its copy share data: one has the data that were written to the other.
    Shared {
        /// SHA-256 of the data that were written to the volume.
        written: String,
        /// SHA-256 of the data that were read from it, which were written to the other volume.
        found: String,
    },
    /// Other data could not be written to the volume or its copy, to see whether both share them.
    NotWritten {
        /// Output of the command that wrote them.
        cause: String,
    },
}

/// Reason why a class does not have a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceAbsence {
    /// The class does not allow expansion.
    NoExpansion,
    /// This user may not read classes, so that it is not known whether this one allows expansion.
    ExpansionNotKnown,
    /// The snapshot to restore has failed.
    NoSnapshot,
}

impl ServiceAbsence {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            ServiceAbsence::NoExpansion => "not offered by the class",
            ServiceAbsence::ExpansionNotKnown => "needs `list` of storageclasses",
            ServiceAbsence::NoSnapshot => "not measured, because the snapshot has failed",
        }
    }
}

/// Latencies of the application before, during and after a service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyWindows {
    /// The time window before the request.
    pub before: Histogram,
    /// From the request until the data are read, or the service has ended.
    pub during: Histogram,
    /// The time window after the end.
    pub after: Histogram,
}

impl LatencyWindows {
    /// Adds the latencies of other windows.
    pub fn add(&mut self, other: &LatencyWindows) {
        self.before.merge(&other.before);
        self.during.merge(&other.during);
        self.after.merge(&other.after);
    }
}

/// One use of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceRecord {
    /// The service.
    pub service: DataService,
    /// Bytes of the data with a checksum.
    pub data_bytes: u64,
    /// Size of the volume that the service begins with, in bytes.
    pub volume_bytes: u64,
    /// Number of the round among those of the same data, from 1.
    pub round: u32,
    /// The outcome.
    pub outcome: ServiceOutcome,
    /// Latencies of the application. `None`: it has not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<LatencyWindows>,
}

impl ServiceRecord {
    /// Returns why the service has failed, or its data are wrong.
    pub fn failure(&self) -> Option<String> {
        match &self.outcome {
            ServiceOutcome::Failed { cause } => Some(cause.clone()),
            ServiceOutcome::Measured {
                data: Some(DataCheck::Wrong { expected, found }),
                ..
            } => Some(format!(
                "the data are wrong: SHA-256 {expected} was written, {found} was read"
            )),
            ServiceOutcome::Measured {
                data: Some(DataCheck::NotRead { cause }),
                ..
            } => Some(format!("the data cannot be read: {cause}")),
            ServiceOutcome::Measured {
                data: Some(DataCheck::Shared { written, found }),
                ..
            } => Some(format!(
                "the volume and its copy share data: SHA-256 {written} was written to one, {found} \
                 of the other was read from it"
            )),
            ServiceOutcome::Measured {
                data: Some(DataCheck::NotWritten { cause }),
                ..
            } => Some(format!("other data cannot be written: {cause}")),
            _ => None,
        }
    }
}

/// The storage class whose services are measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataServiceClass {
    /// The class as the user named it, e.g. `sc://fast`.
    pub name: String,
    /// CSI driver. `None`: this user may not read classes.
    pub driver: Option<String>,
    /// The snapshot class. `None`: no snapshots are measured.
    pub snapshot_class: Option<String>,
    /// Whether the class allows expansion. `None`: this user may not read classes.
    pub expands: Option<bool>,
}

/// Measurements and notes of a session.
#[derive(Debug, Default)]
pub struct ServiceMeasurements {
    /// Each use of a service, in order of time.
    pub records: Vec<ServiceRecord>,
    /// Notes for the user, each in one sentence.
    pub notes: Vec<String>,
    /// Whether the user has stopped the session.
    pub is_interrupted: bool,
    /// Why the application has ended before the services, if it has.
    pub application_failure: Option<String>,
    /// Error that ended the measurement early.
    pub error: Option<RunError>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn data_services_are_all_listed_in_order() {
        assert_eq!(DataService::ALL, DataService::VARIANTS);
    }

    fn record(outcome: ServiceOutcome) -> ServiceRecord {
        ServiceRecord {
            service: DataService::Restore,
            data_bytes: 1 << 20,
            volume_bytes: 1 << 30,
            round: 1,
            outcome,
            application: None,
        }
    }

    #[test]
    fn wrong_data_are_a_failure_but_right_data_are_not() {
        let measured = |data| {
            record(ServiceOutcome::Measured {
                took_ns: 5,
                read_ns: Some(7),
                data: Some(data),
            })
        };
        assert_eq!(measured(DataCheck::Right).failure(), None);
        let wrong = measured(DataCheck::Wrong {
            expected: "aa".to_owned(),
            found: "bb".to_owned(),
        });
        let expected = "the data are wrong: SHA-256 aa was written, bb was read";
        assert_eq!(wrong.failure().as_deref(), Some(expected));
        let shared = measured(DataCheck::Shared {
            written: "aa".to_owned(),
            found: "bb".to_owned(),
        });
        let expected = "the volume and its copy share data: SHA-256 aa was written to one, bb of \
                        the other was read from it";
        assert_eq!(shared.failure().as_deref(), Some(expected));
        let full = measured(DataCheck::NotWritten {
            cause: "no space".to_owned(),
        });
        let expected = "other data cannot be written: no space";
        assert_eq!(full.failure().as_deref(), Some(expected));
        let absent = record(ServiceOutcome::Absent(ServiceAbsence::NoExpansion));
        assert_eq!(absent.failure(), None);
    }

    #[test]
    fn record_without_application_is_read_back() {
        let record = record(ServiceOutcome::Failed {
            cause: "no space".to_owned(),
        });
        let text = serde_json::to_string(&record).unwrap();
        assert!(!text.contains("application"), "{text}");
        assert_eq!(
            serde_json::from_str::<ServiceRecord>(&text).unwrap(),
            record
        );
    }
}
