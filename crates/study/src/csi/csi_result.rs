//! Result of a study of data services.

use super::service_summary::{ServiceSlope, ServiceSummary, fit_slopes, summarize};
use crate::CutShort;
use iosonde_result::data_service::{DataServiceClass, ServiceMeasurements, ServiceRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`CsiResult`] and [`CsiDocument`] as JSON, raised if a field changes its meaning.
pub const FORMAT: u32 = 1;

/// A study of data services as a JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CsiDocument {
    /// Version of the document. It increases when a member changes its meaning.
    pub format: u32,
    /// Always `csi`.
    pub kind: String,
    /// Program and version.
    pub program: String,
    /// Result of the study.
    pub csi: CsiResult,
}

impl CsiDocument {
    /// Returns the document of a result.
    pub fn from_result(csi: CsiResult, program: &str) -> CsiDocument {
        CsiDocument {
            format: FORMAT,
            kind: "csi".to_owned(),
            program: program.to_owned(),
            csi,
        }
    }
}

/// Returns the JSON Schema (2020-12) of [`CsiDocument`]. `docs/schema/csi.json` is its copy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(CsiDocument).to_value()
}

/// Result of a study of data services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CsiResult {
    /// Version of the format.
    pub format: u32,
    /// The class.
    pub class: DataServiceClass,
    /// Size of the first claim in bytes.
    pub claim_bytes: u64,
    /// Options of the application, e.g. `rw=randrw bs=4k`.
    pub application: String,
    /// Each service with each size of the data.
    pub services: Vec<ServiceSummary>,
    /// Growth of the durations with the data, if several sizes were measured.
    pub slopes: Vec<ServiceSlope>,
    /// Each use of a service.
    pub records: Vec<ServiceRecord>,
    /// Notes for the user, each in one sentence.
    pub notes: Vec<String>,
    /// Whether the user stopped the study early.
    pub interrupted: bool,
    /// Why the application has ended before the services, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_failure: Option<String>,
    /// Error that ended the study early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CutShort>,
}

impl CsiResult {
    /// Summarises what was measured.
    pub fn from_measurements(
        class: DataServiceClass,
        claim_bytes: u64,
        application: String,
        measured: ServiceMeasurements,
    ) -> CsiResult {
        CsiResult {
            format: FORMAT,
            class,
            claim_bytes,
            application,
            services: summarize(&measured.records),
            slopes: fit_slopes(&measured.records),
            records: measured.records,
            notes: measured.notes,
            interrupted: measured.is_interrupted,
            application_failure: measured.application_failure,
            error: measured.error.map(CutShort::from),
        }
    }

    /// Returns the name of the class, as the target of the study.
    pub fn target(&self) -> &str {
        &self.class.name
    }

    /// Describes the failures, if a service has failed or returned wrong data, or the application
    /// has failed.
    pub fn failure(&self) -> Option<String> {
        let failures = || {
            let records = self.records.iter();
            records.filter_map(|record| Some((record, record.failure()?)))
        };
        let Some((first, cause)) = failures().next() else {
            let cause = self.application_failure.as_ref()?;
            return Some(format!("the application ended early: {cause}"));
        };
        Some(format!(
            "{} of {} services failed, the first was {}: {cause}",
            failures().count(),
            self.records.len(),
            first.service.title()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::data_service::{DataCheck, DataService, ServiceOutcome};

    fn record(service: DataService, data: Option<DataCheck>) -> ServiceRecord {
        ServiceRecord {
            service,
            data_bytes: 64 << 20,
            volume_bytes: 5 << 30,
            round: 1,
            outcome: ServiceOutcome::Measured {
                took_ns: 2_000_000_000,
                read_ns: None,
                data,
            },
            application: None,
        }
    }

    #[test]
    fn wrong_data_are_the_failure_of_the_study() {
        let class = DataServiceClass {
            name: "sc://fast".to_owned(),
            driver: None,
            snapshot_class: None,
            expands: None,
        };
        let wrong = DataCheck::NotRead {
            cause: "no file".to_owned(),
        };
        let measured = ServiceMeasurements {
            records: vec![
                record(DataService::Snapshot, None),
                record(DataService::Restore, Some(wrong)),
            ],
            ..ServiceMeasurements::default()
        };
        let application = "rw=randrw".to_owned();
        let result = CsiResult::from_measurements(class, 5 << 30, application, measured);
        let expected =
            "1 of 2 services failed, the first was restore: the data cannot be read: no file";
        assert_eq!(result.failure().as_deref(), Some(expected));
        assert_eq!(result.target(), "sc://fast");
        assert_eq!(result.services.len(), 2);
        let without_services = CsiResult {
            records: Vec::new(),
            application_failure: Some("no space".to_owned()),
            ..result
        };
        let expected = "the application ended early: no space";
        assert_eq!(without_services.failure().as_deref(), Some(expected));
    }
}
