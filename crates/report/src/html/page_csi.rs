//! Data services for the page, which draws them as grouped bars: the mean duration of each service
//! over the size of the data, and the application's 99th percentile around each service.

use super::document::{PagePivot, PageUnit, PivotCell};
use iosonde_result::compare::informative_interval;
use iosonde_result::data_service::DataService;
use iosonde_study::csi::{CsiResult, ServiceSummary};
use iosonde_study::words;

/// Titles of the application's times.
const TIMES: [&str; 3] = ["before", "during", "after"];

/// Converts the services to a table of durations and, if the application was measured, one of its
/// latencies for each size.
pub(super) fn convert_csi(source: &str, result: &CsiResult) -> Vec<PagePivot> {
    let mut sizes: Vec<u64> = result.services.iter().map(|one| one.data_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let durations = convert_durations(source, result, &sizes);
    let latencies = sizes
        .iter()
        .filter_map(|bytes| convert_latencies(source, result, *bytes));
    durations.into_iter().chain(latencies).collect()
}

fn find_service(
    result: &CsiResult,
    service: DataService,
    data_bytes: u64,
) -> Option<&ServiceSummary> {
    let mut summaries = result.services.iter();
    summaries.find(|one| one.service == service && one.data_bytes == data_bytes)
}

/// Services with at least one cell.
fn shown_services(has_cell: impl Fn(DataService) -> bool) -> Vec<DataService> {
    let all = DataService::ALL.into_iter();
    all.filter(|service| has_cell(*service)).collect()
}

fn titles(services: &[DataService]) -> Vec<String> {
    let titles = services.iter().map(|service| service.title().to_owned());
    titles.collect()
}

fn convert_durations(source: &str, result: &CsiResult, sizes: &[u64]) -> Option<PagePivot> {
    let cell = |service, bytes| duration_cell(find_service(result, service, bytes)?);
    let services =
        shown_services(|service| sizes.iter().any(|bytes| cell(service, *bytes).is_some()));
    let row = |service: &DataService| -> Vec<Option<PivotCell>> {
        let cells = sizes.iter().map(|bytes| cell(*service, *bytes));
        cells.collect()
    };
    let target = result.target();
    (!services.is_empty()).then(|| PagePivot {
        figure: format!("{source}, data services"),
        title: format!("mean duration of each data service of {target}"),
        unit: PageUnit::Ns,
        row_label: "service".to_owned(),
        column_label: "data".to_owned(),
        cells: services.iter().map(row).collect(),
        rows: titles(&services),
        columns: sizes.iter().map(|bytes| words::bytes(*bytes)).collect(),
        simulated: false,
    })
}

fn convert_latencies(source: &str, result: &CsiResult, bytes: u64) -> Option<PagePivot> {
    let latencies = |service| {
        let application = find_service(result, service, bytes)?.application?;
        let all = [
            application.p99_before_ns,
            application.p99_during_ns,
            application.p99_after_ns,
        ];
        all.iter().any(Option::is_some).then_some(all)
    };
    let services = shown_services(|service| latencies(service).is_some());
    let row = |service: &DataService| -> Vec<Option<PivotCell>> {
        let all = latencies(*service).unwrap_or_default();
        let rounds = find_service(result, *service, bytes).map_or(0, |one| one.measured);
        let cell = |ns: Option<u64>| Some(plain_cell(ns? as f64, rounds));
        all.into_iter().map(cell).collect()
    };
    let (size, target) = (words::bytes(bytes), result.target());
    (!services.is_empty()).then(|| PagePivot {
        figure: format!("{source}, application, {size} of data"),
        title: format!("p99 of the application around each service of {target}, {size} of data"),
        unit: PageUnit::Ns,
        row_label: "service".to_owned(),
        column_label: "time".to_owned(),
        cells: services.iter().map(row).collect(),
        rows: titles(&services),
        columns: TIMES.map(str::to_owned).to_vec(),
        simulated: false,
    })
}

fn duration_cell(summary: &ServiceSummary) -> Option<PivotCell> {
    let took = summary.took?;
    let longest_ns = summary.took_max_ns? as f64;
    let ends = took.interval_ns;
    Some(PivotCell {
        between: ends.and_then(|ends| informative_interval(took.value_ns, ends)),
        note: Some(format!(
            "{}, at most {}",
            words::counted(summary.measured, "round"),
            words::latency(longest_ns)
        )),
        ..plain_cell(took.value_ns, summary.measured)
    })
}

fn plain_cell(value: f64, results: usize) -> PivotCell {
    PivotCell {
        value,
        between: None,
        results,
        note: None,
        promised: None,
        product: None,
        kept: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::data_service::{
        DataServiceClass, LatencyWindows, ServiceMeasurements, ServiceOutcome, ServiceRecord,
    };

    fn result() -> CsiResult {
        let record = |service, mib: u64| {
            let mut windows = LatencyWindows::default();
            windows.before.record_n(10, 400);
            windows.during.record_n(50, 400);
            ServiceRecord {
                service,
                data_bytes: mib << 20,
                volume_bytes: 1 << 30,
                round: 1,
                outcome: ServiceOutcome::Measured {
                    took_ns: 5_000_000,
                    read_ns: None,
                    data: None,
                },
                application: Some(windows),
            }
        };
        let measured = ServiceMeasurements {
            records: vec![
                record(DataService::Snapshot, 64),
                record(DataService::Snapshot, 256),
                record(DataService::Clone, 64),
            ],
            ..ServiceMeasurements::default()
        };
        let class = DataServiceClass {
            name: "sc://fast".to_owned(),
            driver: None,
            snapshot_class: None,
            expands: None,
        };
        CsiResult::from_measurements(class, 1 << 30, "rw=randrw".to_owned(), measured)
    }

    #[test]
    fn services_have_a_table_of_durations_and_one_of_latencies_per_size() {
        let tables = convert_csi("3f2a", &result());
        assert_eq!(tables.len(), 3);
        let durations = &tables[0];
        assert_eq!(durations.rows, ["snapshot", "clone"]);
        assert_eq!(durations.columns, ["64 MiB", "256 MiB"]);
        assert!(durations.cells[1][0].is_some() && durations.cells[1][1].is_none());
        let latencies = &tables[1];
        assert_eq!(latencies.columns, TIMES);
        assert_eq!(latencies.cells[0][1].as_ref().unwrap().value, 50.0);
        assert!(latencies.cells[0][2].is_none(), "too few I/Os");
    }
}
