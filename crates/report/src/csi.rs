//! Report of the data services of a storage class, in each format.

use crate::csv::csv_line;
use crate::early_ending;
use crate::intervals::interval_text;
use crate::json_document::{PROGRAM, json_text};
use crate::markdown_table::{markdown_paragraphs, markdown_table};
use crate::text_table::{
    aligned_columns, fill_table, hide_columns, is_narrow, paragraphs, plain, render_left, wrapped,
};
use iosonde_study::csi::{CsiDocument, CsiResult, ServiceSlope, ServiceSummary};
use iosonde_study::lifecycle::StageFigure;
use iosonde_study::words;

/// Columns of the durations.
const DURATIONS: [&str; 7] = [
    "service",
    "data",
    "n",
    "mean",
    "95 % interval",
    "read",
    "checksum",
];
/// Columns of the application's latencies.
const APPLICATION: [&str; 6] = [
    "p99 of the application",
    "data",
    "before",
    "during",
    "after",
    "max during",
];
/// Columns of the durations that a narrow terminal does not show, the least important first:
/// interval, number of rounds, read, checksum. The findings have the failed checks too.
const LEAST_IMPORTANT_DURATIONS: [usize; 4] = [4, 2, 5, 6];
/// Columns of the latencies that a narrow terminal does not show, the least important first:
/// after, maximum, before.
const LEAST_IMPORTANT_LATENCIES: [usize; 3] = [4, 5, 2];

/// Returns the report as text of at most 80 columns.
pub fn table(result: &CsiResult) -> String {
    let mut text = wrapped(&headline(result));
    let durations = duration_rows(result);
    if !durations.is_empty() {
        let table = service_table(&DURATIONS, durations, &LEAST_IMPORTANT_DURATIONS);
        text.push_str(&format!("\n{table}"));
    }
    let latencies = application_rows(result);
    if !latencies.is_empty() {
        let mut head = APPLICATION;
        // The title is wider than the names of the services.
        if is_narrow() {
            text.push_str(&format!("\n{}", APPLICATION[0]));
            head[0] = "";
        }
        let table = service_table(&head, latencies, &LEAST_IMPORTANT_LATENCIES);
        text.push_str(&format!("\n{table}"));
    }
    text + &paragraphs(&findings(result)) + &paragraphs(&notes(result))
}

/// Table of services, each with its figures.
fn service_table(head: &[&str], rows: Vec<Vec<String>>, least_important: &[usize]) -> String {
    let mut table = fill_table(plain(), &aligned_columns(head, 1), rows);
    hide_columns(&mut table, least_important);
    render_left(&mut table)
}

/// Returns Markdown tables for a report or an issue.
pub fn markdown(result: &CsiResult) -> String {
    let mut text = format!("## Data services\n\n{}\n", headline(result));
    for (head, rows) in [
        (&DURATIONS[..], duration_rows(result)),
        (&APPLICATION[..], application_rows(result)),
    ] {
        if rows.is_empty() {
            continue;
        }
        let table = markdown_table(&aligned_columns(head, 1), rows);
        text.push_str(&format!("\n{table}"));
    }
    text + &markdown_paragraphs(&findings(result)) + &markdown_paragraphs(&notes(result))
}

/// CSV with one line per service and size of the data. Durations and latencies are in nanoseconds.
pub fn csi_csv(result: &CsiResult) -> String {
    let mut text = "class,service,data_bytes,measured,failed,right,mean_ns,mean_low_95,\
                    mean_high_95,max_ns,read_mean_ns,app_p99_before_ns,app_p99_during_ns,\
                    app_p99_after_ns,app_max_during_ns\n"
        .to_owned();
    let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.0}"));
    let interval = |figure: Option<StageFigure>| figure.and_then(|figure| figure.interval_ns);
    for summary in &result.services {
        let application = summary.application.unwrap_or_default();
        text.push_str(&csv_line([
            result.class.name.clone(),
            summary.service.title().to_owned(),
            summary.data_bytes.to_string(),
            summary.measured.to_string(),
            summary.failed.to_string(),
            summary.right.to_string(),
            number(summary.took.map(|figure| figure.value_ns)),
            number(interval(summary.took).map(|(low, _)| low)),
            number(interval(summary.took).map(|(_, high)| high)),
            whole(summary.took_max_ns),
            number(summary.read.map(|figure| figure.value_ns)),
            whole(application.p99_before_ns),
            whole(application.p99_during_ns),
            whole(application.p99_after_ns),
            whole(application.max_during_ns),
        ]));
    }
    text
}

/// Returns the whole result as JSON. `docs/schema/csi.json` is its schema.
pub fn csi_json(result: &CsiResult) -> serde_json::Result<String> {
    json_text(&CsiDocument::from_result(result.clone(), PROGRAM))
}

fn headline(result: &CsiResult) -> String {
    let class = &result.class;
    let driver = class.driver.as_ref();
    let driver = driver.map_or(String::new(), |driver| format!(", driver {driver}"));
    let snapshots = class.snapshot_class.as_ref();
    let snapshots = snapshots.map_or(String::new(), |name| format!(", snapshot class {name}"));
    format!(
        "Data services of {}{driver}{snapshots}, claim of {}, application: {}",
        class.name,
        words::bytes(result.claim_bytes),
        result.application
    )
}

/// Rows of the services that were measured.
fn duration_rows(result: &CsiResult) -> Vec<Vec<String>> {
    let measured = result.services.iter().filter(|one| one.measured > 0);
    measured.map(duration_row).collect()
}

fn duration_row(summary: &ServiceSummary) -> Vec<String> {
    let value = |figure: Option<StageFigure>| {
        figure.map_or("-".to_owned(), |figure| words::latency(figure.value_ns))
    };
    let interval = summary.took.map_or(String::new(), |figure| {
        interval_text(figure.value_ns, figure.interval_ns, words::latency)
    });
    let checksum = match (summary.right, summary.failed) {
        (0, 0) => "-".to_owned(),
        (_, 0) => "right".to_owned(),
        (_, failed) => format!("{failed} failed"),
    };
    vec![
        summary.service.title().to_owned(),
        words::bytes(summary.data_bytes),
        summary.measured.to_string(),
        value(summary.took),
        interval,
        value(summary.read),
        checksum,
    ]
}

/// Rows of the services during which the application was measured.
fn application_rows(result: &CsiResult) -> Vec<Vec<String>> {
    let latency = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| words::latency(ns as f64));
    let row = |summary: &ServiceSummary| {
        let application = summary.application?;
        Some(vec![
            summary.service.title().to_owned(),
            words::bytes(summary.data_bytes),
            latency(application.p99_before_ns),
            latency(application.p99_during_ns),
            latency(application.p99_after_ns),
            latency(application.max_during_ns),
        ])
    };
    result.services.iter().filter_map(row).collect()
}

/// Growth over the size, services without a duration, and failures, one sentence each.
fn findings(result: &CsiResult) -> Vec<String> {
    let growth = result.slopes.iter().map(slope_words);
    let mut lines: Vec<String> = growth.collect();
    for summary in &result.services {
        let title = summary.service.title();
        if let Some(absence) = summary.absence {
            let line = format!("{title}: {}", absence.words());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if let Some(failure) = &summary.failure {
            let size = words::bytes(summary.data_bytes);
            let failed = words::counted(summary.failed, "round");
            lines.push(format!("{title}, {size}: {failed} failed: {failure}"));
        }
    }
    lines
}

fn slope_words(slope: &ServiceSlope) -> String {
    let title = slope.service.title();
    match slope.is_growth() {
        true => {
            let rate = words::bandwidth(1e9 / slope.ns_per_byte);
            let fixed = match slope.fixed_ns > 0.0 {
                true => format!("{} and ", words::latency(slope.fixed_ns)),
                false => String::new(),
            };
            format!("{title}: {fixed}the data at {rate}")
        }
        false if slope.deviation_ns.is_none() => format!(
            "{title}: whether it grows with the size of the data is not known after one round"
        ),
        false => format!("{title}: no growth with the size of the data was measured"),
    }
}

fn notes(result: &CsiResult) -> Vec<String> {
    let mut notes = result.notes.clone();
    if let Some(cause) = &result.application_failure {
        notes.push(format!("The application ended early: {cause}"));
    }
    notes.extend(early_ending(result.interrupted, result.error.as_ref()));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::data_service::{
        DataCheck, DataService, DataServiceClass, LatencyWindows, ServiceAbsence,
        ServiceMeasurements, ServiceOutcome, ServiceRecord,
    };

    const MS: u64 = 1_000_000;

    /// A class with slow clones, a wrong restore, and without expansion.
    fn outcome(service: DataService, mib: u64, round: u32) -> ServiceOutcome {
        let measured = |took_ms: u64, data: Option<DataCheck>| ServiceOutcome::Measured {
            took_ns: (took_ms + u64::from(round)) * MS,
            read_ns: data.as_ref().map(|_| mib * 4 * MS),
            data,
        };
        match service {
            DataService::Snapshot => measured(900, None),
            DataService::Restore if round == 2 && mib == 256 => {
                let wrong = DataCheck::Wrong {
                    expected: "aa".to_owned(),
                    found: "bb".to_owned(),
                };
                measured(2000, Some(wrong))
            }
            DataService::Restore => measured(2000, Some(DataCheck::Right)),
            DataService::Clone => measured(1000 + 10 * mib, Some(DataCheck::Right)),
            DataService::Expand => ServiceOutcome::Absent(ServiceAbsence::NoExpansion),
        }
    }

    fn result() -> CsiResult {
        let mut records = Vec::new();
        for round in 1..=2 {
            for mib in [64, 256] {
                for service in DataService::ALL {
                    let mut windows = LatencyWindows::default();
                    windows.before.record_n(MS, 500);
                    windows.during.record_n(8 * MS, 500);
                    windows.after.record_n(MS, 500);
                    records.push(ServiceRecord {
                        service,
                        data_bytes: mib << 20,
                        volume_bytes: 5 << 30,
                        round,
                        outcome: outcome(service, mib, round),
                        application: (service != DataService::Expand).then_some(windows),
                    });
                }
            }
        }
        let class = DataServiceClass {
            name: "sc://fast".to_owned(),
            driver: Some("example.com/disk".to_owned()),
            snapshot_class: Some("daily".to_owned()),
            expands: Some(false),
        };
        let measured = ServiceMeasurements {
            records,
            ..ServiceMeasurements::default()
        };
        CsiResult::from_measurements(class, 5 << 30, "rw=randrw bs=4k".to_owned(), measured)
    }

    #[test]
    fn table_shows_durations_checksums_and_latencies_around_them() {
        let text = table(&result());
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(text.lines().all(is_narrow), "{text}");
        insta::assert_snapshot!(text, @r#"
        Data services of sc://fast, driver example.com/disk, snapshot class daily, claim
        of 5 GiB, application: rw=randrw bs=4k

        service      data  n    mean     95 % interval    read  checksum
        snapshot   64 MiB  2  902 ms  895 ms to 908 ms       -         -
        snapshot  256 MiB  2  902 ms  895 ms to 908 ms       -         -
        restore    64 MiB  2  2.00 s  2.00 s to 2.01 s  256 ms     right
        restore   256 MiB  2  2.00 s  2.00 s to 2.01 s  1.02 s  1 failed
        clone      64 MiB  2  1.64 s  1.64 s to 1.65 s  256 ms     right
        clone     256 MiB  2  3.56 s  3.56 s to 3.57 s  1.02 s     right

        p99 of the application     data   before   during    after  max during
        snapshot                 64 MiB  1.00 ms  8.01 ms  1.00 ms     8.01 ms
        snapshot                256 MiB  1.00 ms  8.01 ms  1.00 ms     8.01 ms
        restore                  64 MiB  1.00 ms  8.01 ms  1.00 ms     8.01 ms
        restore                 256 MiB  1.00 ms  8.01 ms  1.00 ms     8.01 ms
        clone                    64 MiB  1.00 ms  8.01 ms  1.00 ms     8.01 ms
        clone                   256 MiB  1.00 ms  8.01 ms  1.00 ms     8.01 ms

        snapshot: no growth with the size of the data was measured

        restore: no growth with the size of the data was measured

        clone: 1.00 s and the data at 100 MiB/s

        restore, 256 MiB: 1 round failed: the data are wrong: SHA-256 aa was written, bb
        was read

        expand: not offered by the class
        "#);
    }

    #[test]
    fn narrow_terminal_shows_durations_and_checksums_of_services() {
        let mut result = result();
        result.class.name = format!("sc://{}", "replicated-".repeat(8));
        for summary in &mut result.services {
            summary.data_bytes += 1000 << 30;
            if let Some(took) = &mut summary.took {
                took.value_ns *= 1000.0;
            }
        }
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = table(&result);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            assert!(!text.contains("95 % interval"), "{text}");
            assert!(
                text.contains("checksum") && text.contains("1 failed"),
                "{text}"
            );
            assert!(text.contains("during"), "{text}");
            // A row is not wrapped.
            assert_eq!(text.matches("\nrestore ").count(), 4, "{text}");
        }
        crate::text_table::set_columns(80);
    }

    #[test]
    fn findings_name_growth_absence_and_wrong_data() {
        let text = findings(&result()).join("\n");
        let growth = "restore: no growth with the size of the data was measured";
        assert!(text.contains(growth), "{text}");
        assert!(text.contains("clone: "), "{text}");
        assert!(text.contains("expand: not offered by the class"), "{text}");
        assert!(
            text.contains("1 round failed: the data are wrong"),
            "{text}"
        );
    }

    #[test]
    fn findings_of_one_round_show_no_growth() {
        let mut one_round = result();
        one_round.slopes[0].deviation_ns = None;
        let text = findings(&one_round).join("\n");
        let expected = "snapshot: whether it grows with the size of the data is not known after";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn csv_has_a_line_per_service_and_size() {
        let text = csi_csv(&result());
        assert_eq!(text.lines().count(), 1 + 2 * DataService::ALL.len());
        assert!(text.contains("\nsc://fast,clone,67108864,2,0,2,"), "{text}");
    }

    #[test]
    fn document_is_read_back() {
        let text = csi_json(&result()).unwrap();
        let document: CsiDocument = serde_json::from_str(&text).unwrap();
        assert_eq!(document.kind, "csi");
        assert_eq!(document.csi, result());
    }

    #[test]
    fn markdown_has_both_tables() {
        let text = markdown(&result());
        assert!(text.contains("| service |"), "{text}");
        assert!(text.contains("| p99 of the application |"), "{text}");
    }
}
