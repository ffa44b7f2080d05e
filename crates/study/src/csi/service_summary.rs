//! Durations of a data service over the rounds of one size, their growth with the size, and the
//! application's latencies around it.

use crate::lifecycle::{StageFigure, interval_of_mean};
use iosonde_result::data_service::{
    DataService, LatencyWindows, ServiceAbsence, ServiceOutcome, ServiceRecord,
};
use iosonde_result::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewest I/Os for a 99th percentile. The longest of 300 exceeds the true percentile with a
/// probability of 95 %; the longest of 100 only with 63 %.
const P99_IOS_MIN: u64 = 300;

/// A service with one size of the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceSummary {
    /// The service.
    pub service: DataService,
    /// Bytes of the data with a checksum.
    pub data_bytes: u64,
    /// Number of rounds in which the service was measured.
    pub measured: usize,
    /// Number of rounds in which it has failed, or its data were wrong.
    pub failed: usize,
    /// Number of rounds in which the data were compared and right.
    pub right: usize,
    /// Why the class does not have the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence: Option<ServiceAbsence>,
    /// Mean duration.
    pub took: Option<StageFigure>,
    /// Longest duration in nanoseconds.
    pub took_max_ns: Option<u64>,
    /// Mean duration of the first read of the data in the new volume.
    pub read: Option<StageFigure>,
    /// Latencies of the application over all rounds.
    pub application: Option<ServiceLatencies>,
    /// Cause of the first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Percentiles of the application's latencies around a service, in nanoseconds. `None`: too few
/// I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServiceLatencies {
    /// 99th percentile before the service.
    pub p99_before_ns: Option<u64>,
    /// 99th percentile during the service.
    pub p99_during_ns: Option<u64>,
    /// 99th percentile after the service.
    pub p99_after_ns: Option<u64>,
    /// Longest latency during the service.
    pub max_during_ns: Option<u64>,
}

impl ServiceLatencies {
    fn from_windows(windows: &LatencyWindows) -> ServiceLatencies {
        let p99 = |latency: &Histogram| match latency.total() {
            P99_IOS_MIN.. => latency.percentile(99.0),
            _ => None,
        };
        ServiceLatencies {
            p99_before_ns: p99(&windows.before),
            p99_during_ns: p99(&windows.during),
            p99_after_ns: p99(&windows.after),
            max_during_ns: windows.during.percentile(100.0),
        }
    }
}

/// Growth of the duration of a service with the size of the data, by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceSlope {
    /// The service.
    pub service: DataService,
    /// Duration without data, in nanoseconds. It may be negative.
    pub fixed_ns: f64,
    /// Nanoseconds for each further byte. It may be negative.
    pub ns_per_byte: f64,
    /// Change of the duration from the smallest to the largest data, in nanoseconds, as measured.
    pub change_ns: f64,
    /// Standard deviation of the durations of one size, in nanoseconds. `None`: one round.
    pub deviation_ns: Option<f64>,
}

impl ServiceSlope {
    /// Whether the duration grows by more than its variation between rounds. One round shows no
    /// variation, so that its growth is not known.
    pub fn is_growth(&self) -> bool {
        let exceeds = |deviation_ns: f64| self.change_ns > 2.0 * deviation_ns;
        self.ns_per_byte > 0.0 && self.deviation_ns.is_some_and(exceeds)
    }
}

/// Summarises each service with each size, in the order of sizes and services.
pub(super) fn summarize(records: &[ServiceRecord]) -> Vec<ServiceSummary> {
    let mut keys: Vec<(u64, DataService)> = Vec::new();
    for record in records {
        let key = (record.data_bytes, record.service);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.sort_unstable_by_key(|(data_bytes, service)| (*service, *data_bytes));
    let summary = |(data_bytes, service): (u64, DataService)| {
        let is_member =
            |record: &&ServiceRecord| record.data_bytes == data_bytes && record.service == service;
        let members: Vec<&ServiceRecord> = records.iter().filter(is_member).collect();
        summary_of((data_bytes, service), &members)
    };
    keys.into_iter().map(summary).collect()
}

fn summary_of(
    (data_bytes, service): (u64, DataService),
    members: &[&ServiceRecord],
) -> ServiceSummary {
    let took: Vec<f64> = members
        .iter()
        .filter_map(|record| took_ns(record))
        .collect();
    let read = members.iter().filter_map(|record| match record.outcome {
        ServiceOutcome::Measured { read_ns, .. } => read_ns.map(|ns| ns as f64),
        _ => None,
    });
    let read: Vec<f64> = read.collect();
    let failures: Vec<String> = members
        .iter()
        .filter_map(|record| record.failure())
        .collect();
    let is_right = |record: &&&ServiceRecord| {
        let compared = matches!(
            record.outcome,
            ServiceOutcome::Measured { data: Some(_), .. }
        );
        compared && record.failure().is_none()
    };
    let absence = members.iter().find_map(|record| match record.outcome {
        ServiceOutcome::Absent(absence) => Some(absence),
        _ => None,
    });
    let mut windows: Option<LatencyWindows> = None;
    for of_record in members
        .iter()
        .filter_map(|record| record.application.as_ref())
    {
        windows.get_or_insert_default().add(of_record);
    }
    ServiceSummary {
        service,
        data_bytes,
        measured: took.len(),
        failed: failures.len(),
        right: members.iter().filter(is_right).count(),
        absence: absence.filter(|_| took.is_empty()),
        took_max_ns: took.iter().copied().reduce(f64::max).map(|ns| ns as u64),
        took: mean_figure(&took),
        read: mean_figure(&read),
        application: windows.as_ref().map(ServiceLatencies::from_windows),
        failure: failures.into_iter().next(),
    }
}

fn took_ns(record: &ServiceRecord) -> Option<f64> {
    match record.outcome {
        ServiceOutcome::Measured { took_ns, .. } => Some(took_ns as f64),
        _ => None,
    }
}

fn mean_figure(values: &[f64]) -> Option<StageFigure> {
    let value_ns = arithmetic_mean(values)?;
    Some(StageFigure {
        value_ns,
        interval_ns: interval_of_mean(value_ns, values),
    })
}

fn arithmetic_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Fits a line to the durations of each service over the size of the data.
pub(super) fn fit_slopes(records: &[ServiceRecord]) -> Vec<ServiceSlope> {
    let slopes = DataService::ALL.into_iter();
    slopes
        .filter_map(|service| fit_slope(service, records))
        .collect()
}

fn fit_slope(service: DataService, records: &[ServiceRecord]) -> Option<ServiceSlope> {
    let points = records.iter().filter(|record| record.service == service);
    let points: Vec<(u64, f64)> = points
        .filter_map(|record| Some((record.data_bytes, took_ns(record)?)))
        .collect();
    let smallest = points.iter().map(|(bytes, _)| *bytes).min()?;
    let largest = points.iter().map(|(bytes, _)| *bytes).max()?;
    if smallest == largest {
        return None;
    }
    let of_size = |size: u64| -> Vec<f64> {
        let same = points.iter().filter(|(bytes, _)| *bytes == size);
        same.map(|(_, ns)| *ns).collect()
    };
    let all_bytes: Vec<f64> = points.iter().map(|(bytes, _)| *bytes as f64).collect();
    let all_ns: Vec<f64> = points.iter().map(|(_, ns)| *ns).collect();
    let (mean_bytes, mean_ns) = (arithmetic_mean(&all_bytes)?, arithmetic_mean(&all_ns)?);
    let pairs = || all_bytes.iter().zip(&all_ns);
    let products: f64 = pairs()
        .map(|(bytes, ns)| (bytes - mean_bytes) * (ns - mean_ns))
        .sum();
    let squares: f64 = all_bytes
        .iter()
        .map(|bytes| (bytes - mean_bytes).powi(2))
        .sum();
    debug_assert!(squares > 0.0, "sizes differ");
    let ns_per_byte = products / squares;
    Some(ServiceSlope {
        service,
        fixed_ns: mean_ns - ns_per_byte * mean_bytes,
        ns_per_byte,
        change_ns: arithmetic_mean(&of_size(largest))? - arithmetic_mean(&of_size(smallest))?,
        deviation_ns: deviation_within_sizes(&points),
    })
}

/// Returns the standard deviation of durations around the mean of their size.
fn deviation_within_sizes(points: &[(u64, f64)]) -> Option<f64> {
    let mut sizes: Vec<u64> = points.iter().map(|(bytes, _)| *bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let freedom = points.len().checked_sub(sizes.len())?;
    if freedom == 0 {
        return None;
    }
    let mut squares = 0.0;
    for size in sizes {
        let same = points.iter().filter(|(bytes, _)| *bytes == size);
        let values: Vec<f64> = same.map(|(_, ns)| *ns).collect();
        let mean_ns = arithmetic_mean(&values)?;
        squares += values.iter().map(|ns| (ns - mean_ns).powi(2)).sum::<f64>();
    }
    Some((squares / freedom as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::data_service::DataCheck;

    const MIB: u64 = 1 << 20;

    fn record(data_bytes: u64, round: u32, took_ns: u64) -> ServiceRecord {
        ServiceRecord {
            service: DataService::Clone,
            data_bytes,
            volume_bytes: 5 << 30,
            round,
            outcome: ServiceOutcome::Measured {
                took_ns,
                read_ns: Some(took_ns / 2),
                data: Some(DataCheck::Right),
            },
            application: None,
        }
    }

    /// Windows whose I/Os take this long before, during and after.
    fn windows(ios: u64, latencies_ns: [u64; 3]) -> LatencyWindows {
        let mut windows = LatencyWindows::default();
        windows.before.record_n(latencies_ns[0], ios);
        windows.during.record_n(latencies_ns[1], ios);
        windows.after.record_n(latencies_ns[2], ios);
        windows
    }

    #[test]
    fn rounds_of_a_size_are_summarised_with_their_latencies() {
        let mut records = vec![
            record(MIB, 1, 100),
            record(4 * MIB, 1, 400),
            record(MIB, 2, 300),
        ];
        records[0].application = Some(windows(160, [10, 40, 10]));
        records[1].application = Some(windows(160, [10, 40, 10]));
        records[2].application = Some(windows(160, [10, 40, 10]));
        let summaries = summarize(&records);
        let sizes: Vec<u64> = summaries.iter().map(|one| one.data_bytes).collect();
        assert_eq!(sizes, [MIB, 4 * MIB]);
        let small = &summaries[0];
        assert_eq!((small.measured, small.failed, small.right), (2, 0, 2));
        assert_eq!(small.took.unwrap().value_ns, 200.0);
        assert_eq!(small.read.unwrap().value_ns, 100.0);
        assert_eq!(small.took_max_ns, Some(300));
        let application = small.application.unwrap();
        // 160 I/Os of one round are too few, 320 of two rounds are enough.
        assert_eq!(application.p99_before_ns, Some(10));
        assert_eq!(application.p99_during_ns, Some(40));
        let large = summaries[1].application.unwrap();
        assert_eq!((large.p99_during_ns, large.max_during_ns), (None, Some(40)));
        records[1].application = None;
        assert_eq!(summarize(&records)[1].application, None);
    }

    #[test]
    fn growth_with_the_data_is_a_line() {
        let sizes = [MIB, 2 * MIB, 4 * MIB];
        let rounds = [1, 2].into_iter();
        let records: Vec<_> = rounds
            .flat_map(|round| sizes.map(|bytes| record(bytes, round, 1000 + bytes * 3)))
            .collect();
        let slopes = fit_slopes(&records);
        let [slope] = &slopes[..] else {
            panic!("{slopes:?}");
        };
        assert!((slope.ns_per_byte - 3.0).abs() < 1e-6, "{slope:?}");
        assert!((slope.fixed_ns - 1000.0).abs() < 1.0, "{slope:?}");
        assert!(slope.is_growth());
        assert!(
            fit_slopes(&records[..1]).is_empty(),
            "one size has no slope"
        );
        let one_round = fit_slopes(&records[..3]);
        assert_eq!(one_round[0].deviation_ns, None);
        assert!(!one_round[0].is_growth(), "its variation is not known");
    }

    #[test]
    fn change_within_the_variation_of_rounds_is_no_growth() {
        let records = [
            record(MIB, 1, 1000),
            record(MIB, 2, 3000),
            record(4 * MIB, 1, 1200),
            record(4 * MIB, 2, 3200),
        ];
        assert!(!fit_slopes(&records)[0].is_growth());
    }

    #[test]
    fn absent_and_failed_services_have_no_duration() {
        let mut absent = record(MIB, 1, 5);
        absent.outcome = ServiceOutcome::Absent(ServiceAbsence::NoExpansion);
        let summaries = summarize(&[absent]);
        assert_eq!(summaries[0].absence, Some(ServiceAbsence::NoExpansion));
        assert_eq!(summaries[0].took, None);
        let mut failed = record(MIB, 1, 5);
        let cause = "no space".to_owned();
        failed.outcome = ServiceOutcome::Failed { cause };
        let summaries = summarize(&[failed]);
        assert_eq!((summaries[0].measured, summaries[0].failed), (0, 1));
        assert_eq!(summaries[0].failure.as_deref(), Some("no space"));
    }
}
