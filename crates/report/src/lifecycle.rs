//! Report of a life cycle of volumes, in each format.

use crate::csv::csv_line;
use crate::early_ending;
use crate::intervals::interval_text;
use crate::json_document::{PROGRAM, json_text};
use crate::markdown_table::{markdown_paragraphs, markdown_table};
use crate::text_table::{
    aligned_columns, fill_table, hide_columns, paragraphs, plain, render_left, wrapped,
};
use iosonde_study::lifecycle::{
    LifecycleDocument, LifecycleGroup, LifecycleResult, SerialStage, StageFigure, StageSummary,
};
use iosonde_study::words;

const HEAD: [&str; 7] = ["stage", "n", "p50", "95 % interval", "p90", "p99", "max"];
/// Columns that a narrow terminal does not show, the least important first: interval, number of
/// volumes, p90, p99.
const LEAST_IMPORTANT: [usize; 4] = [3, 1, 4, 5];

/// Returns the report as text of at most 80 columns.
pub fn table(result: &LifecycleResult) -> String {
    let mut text = wrapped(&headline(result));
    for group in &result.groups {
        text.push_str(&format!("\n{}", wrapped(&group_title(group))));
        let mut table = fill_table(plain(), &aligned_columns(&HEAD, 1), stage_rows(group));
        hide_columns(&mut table, &LEAST_IMPORTANT);
        text.push_str(&render_left(&mut table));
        for line in findings(group) {
            text.push_str(&wrapped(&line));
        }
    }
    text + &paragraphs(&notes(result))
}

/// Returns Markdown tables for a report or an issue.
pub fn markdown(result: &LifecycleResult) -> String {
    let mut text = format!("## Volume life cycle\n\n{}\n", headline(result));
    for group in &result.groups {
        let table = markdown_table(&aligned_columns(&HEAD, 1), stage_rows(group));
        text.push_str(&format!("\n### {}\n\n{table}", group_title(group)));
        text.push_str(&markdown_paragraphs(&findings(group)));
    }
    text + &markdown_paragraphs(&notes(result))
}

/// CSV with one line per stage of each class and number at once. Durations are in nanoseconds.
pub fn lifecycle_csv(result: &LifecycleResult) -> String {
    let mut text = "class,at_once,stage,measured,failed,mean_ns,mean_low_95,mean_high_95,p50_ns,\
                    p50_low_95,p50_high_95,p90_ns,p99_ns,max_ns\n"
        .to_owned();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.0}"));
    let value = |figure: Option<StageFigure>| number(figure.map(|figure| figure.value_ns));
    let low = |figure: Option<StageFigure>| number(figure.and_then(|one| Some(one.interval_ns?.0)));
    let high =
        |figure: Option<StageFigure>| number(figure.and_then(|one| Some(one.interval_ns?.1)));
    for group in &result.groups {
        for stage in &group.stages {
            text.push_str(&csv_line([
                group.class.clone(),
                group.at_once.to_string(),
                stage.stage.title().to_owned(),
                stage.measured.to_string(),
                stage.failed.to_string(),
                value(stage.mean),
                low(stage.mean),
                high(stage.mean),
                value(stage.p50),
                low(stage.p50),
                high(stage.p50),
                value(stage.p90),
                value(stage.p99),
                stage.max_ns.map_or(String::new(), |ns| ns.to_string()),
            ]));
        }
    }
    text
}

/// Returns the whole result as JSON. `docs/schema/lifecycle.json` is its schema.
pub fn lifecycle_json(result: &LifecycleResult) -> serde_json::Result<String> {
    json_text(&LifecycleDocument::from_result(result.clone(), PROGRAM))
}

fn headline(result: &LifecycleResult) -> String {
    let volumes = words::counted(result.volumes.len(), "volume");
    let claim = words::bytes(result.claim_bytes);
    format!(
        "Life cycle of {volumes} of {}, claims of {claim}",
        result.target()
    )
}

fn group_title(group: &LifecycleGroup) -> String {
    let volumes = words::counted(group.volumes, "volume");
    let when = match group.at_once {
        1 => "one after the other".to_owned(),
        count => format!("{count} at once"),
    };
    let failed = match group.failed_volumes {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!("{}, {when}: {volumes}{failed}", group.class)
}

/// Rows of the stages that were measured.
fn stage_rows(group: &LifecycleGroup) -> Vec<[String; 7]> {
    let measured = group.stages.iter().filter(|stage| stage.measured > 0);
    measured.map(stage_row).collect()
}

fn stage_row(stage: &StageSummary) -> [String; 7] {
    let value = |figure: Option<StageFigure>| {
        figure.map_or("-".to_owned(), |figure| words::latency(figure.value_ns))
    };
    let interval = stage.p50.map_or(String::new(), |median| {
        interval_text(median.value_ns, median.interval_ns, words::latency)
    });
    let longest = stage.max_ns.map(|ns| words::latency(ns as f64));
    [
        stage.stage.title().to_owned(),
        stage.measured.to_string(),
        value(stage.p50),
        interval,
        value(stage.p90),
        value(stage.p99),
        longest.unwrap_or_default(),
    ]
}

/// Stages without a time, serial stages and failures, one sentence each.
fn findings(group: &LifecycleGroup) -> Vec<String> {
    let absent = group.stages.iter().filter_map(|stage| {
        let absence = stage.absence?;
        Some(format!("{}: {}", stage.stage.title(), absence.words()))
    });
    let serial = group.serial.iter().map(serial_words);
    let failures = group.failures.iter().map(|failure| {
        let volumes = words::counted(failure.volumes, "volume");
        let stage = failure.stage.title();
        format!("{volumes} failed at {stage}: {}", failure.cause)
    });
    absent.chain(serial).chain(failures).collect()
}

/// Greatest rate of a stage whose volumes take longer than one after the other, as a share of the
/// rate of volumes that follow each other and take as long as a single one.
const SLOWER_THAN_SERIAL_MAX: f64 = 0.5;

fn serial_words(serial: &SerialStage) -> String {
    let stage = serial.stage.title();
    let rate = words::three_digits(serial.volumes_per_s);
    let alone = words::latency(serial.alone_ns);
    let share_of_serial = serial.volumes_per_s * serial.alone_ns / 1e9;
    let how = match serial.parallel.round() as u64 {
        0 | 1 if share_of_serial < SLOWER_THAN_SERIAL_MAX => {
            "volumes take longer than one after the other".to_owned()
        }
        0 | 1 => "volumes are handled one after the other".to_owned(),
        count => format!("about {count} volumes are handled at the same time"),
    };
    format!("{stage}: {how}, {rate} volumes/s; one alone takes {alone}")
}

fn notes(result: &LifecycleResult) -> Vec<String> {
    let mut notes = result.notes.clone();
    notes.extend(early_ending(result.interrupted, result.error.as_ref()));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::volume_lifecycle::{
        LifecycleClass, LifecycleRound, LifecycleRoundResult, LifecycleStage, StageAbsence,
        StageOutcome, StageRecord, VolumeRecord,
    };
    use iosonde_study::lifecycle::{LifecycleOptions, run_lifecycle};

    const MS: u64 = 1_000_000;

    #[test]
    fn volumes_slower_than_one_after_the_other_are_named_so() {
        let serial = |volumes_per_s| SerialStage {
            stage: LifecycleStage::Provision,
            volumes_per_s,
            parallel: 1.0,
            alone_ns: 28.4e6,
        };
        assert!(serial_words(&serial(3.25)).contains("longer than one after the other"));
        assert!(serial_words(&serial(33.0)).contains("handled one after the other"));
    }

    /// A class that makes volumes one after the other and does not expand them.
    fn volume(round: &LifecycleRound, number: u64) -> VolumeRecord {
        let took = |begun_ms: u64, took_ms: u64| StageOutcome::Measured {
            begun_ns: begun_ms * MS,
            took_ns: took_ms * MS,
        };
        let outcome = |stage| match stage {
            LifecycleStage::Provision => took(0, 500 * (number + 1) + u64::from(round.number)),
            LifecycleStage::Attach => StageOutcome::Absent(StageAbsence::NoAttachments),
            LifecycleStage::Expand => StageOutcome::Absent(StageAbsence::NoExpansion),
            LifecycleStage::Delete if number == 7 => StageOutcome::Failed {
                cause: "not deleted after 300 s: VolumeFailedDelete: busy".to_owned(),
            },
            _ => took(9000, 40 + number),
        };
        let record = |stage| StageRecord {
            stage,
            outcome: outcome(stage),
        };
        VolumeRecord {
            class: "sc://fast".to_owned(),
            at_once: round.at_once,
            round: round.number,
            stages: LifecycleStage::ALL.into_iter().map(record).collect(),
        }
    }

    fn result() -> LifecycleResult {
        let class = LifecycleClass {
            name: "sc://fast".to_owned(),
            provisioner: Some("example.com/fast".to_owned()),
            binds_late: false,
            expands: Some(false),
        };
        let options = LifecycleOptions {
            counts: vec![1, 8],
            rounds: Some(6),
            claim_bytes: 1 << 30,
        };
        let mut measure = |round: &LifecycleRound| {
            let numbers = 0..u64::from(round.at_once);
            Ok(LifecycleRoundResult {
                volumes: numbers.map(|number| volume(round, number)).collect(),
                ..LifecycleRoundResult::default()
            })
        };
        run_lifecycle(vec![class], &options, &mut measure).unwrap()
    }

    #[test]
    fn table_shows_stages_serial_stages_and_failures() {
        insta::assert_snapshot!(table(&result()), @r#"
        Life cycle of 54 volumes of sc://fast, claims of 1 GiB

        sc://fast, one after the other: 6 volumes
        stage        n      p50       95 % interval      p90  p99      max
        provision    6   503 ms    501 ms to 506 ms   506 ms    -   506 ms
        bind         6  40.0 ms  40.0 ms to 40.0 ms  40.0 ms    -  40.0 ms
        mount        6  40.0 ms  40.0 ms to 40.0 ms  40.0 ms    -  40.0 ms
        first write  6  40.0 ms  40.0 ms to 40.0 ms  40.0 ms    -  40.0 ms
        detach       6  40.0 ms  40.0 ms to 40.0 ms  40.0 ms    -  40.0 ms
        delete       6  40.0 ms  40.0 ms to 40.0 ms  40.0 ms    -  40.0 ms
        attach: not used by the driver
        expand: not offered by the class

        sc://fast, 8 at once: 48 volumes, 6 failed
        stage         n      p50       95 % interval      p90  p99      max
        provision    48   2.01 s    2.00 s to 2.01 s   4.00 s    -   4.01 s
        bind         48  43.0 ms  43.0 ms to 43.0 ms  47.0 ms    -  47.0 ms
        mount        48  43.0 ms  43.0 ms to 43.0 ms  47.0 ms    -  47.0 ms
        first write  48  43.0 ms  43.0 ms to 43.0 ms  47.0 ms    -  47.0 ms
        detach       48  43.0 ms  43.0 ms to 43.0 ms  47.0 ms    -  47.0 ms
        delete       42  43.0 ms  43.0 ms to 43.0 ms  46.0 ms    -  46.0 ms
        attach: not used by the driver
        expand: not offered by the class
        provision: volumes are handled one after the other, 2.00 volumes/s; one alone
        takes 503 ms
        6 volumes failed at delete: not deleted after 300 s: VolumeFailedDelete: busy
        "#);
    }

    #[test]
    fn narrow_terminal_shows_p50_and_maximum_of_each_stage() {
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = table(&result());
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            let rows = text.lines().filter(|line| line.starts_with("provision "));
            let rows: Vec<&str> = rows.collect();
            assert_eq!(rows.len(), 2, "{text}");
            assert!(
                rows[1].contains(" 2.01 s ") && rows[1].ends_with(" 4.01 s"),
                "{text}"
            );
        }
        crate::text_table::set_columns(80);
    }

    #[test]
    fn csv_has_a_line_per_stage_and_group() {
        let text = lifecycle_csv(&result());
        assert_eq!(text.lines().count(), 1 + 2 * LifecycleStage::ALL.len());
        assert!(text.contains("\nsc://fast,8,provision,48,0,"), "{text}");
    }

    #[test]
    fn document_is_read_back() {
        let text = lifecycle_json(&result()).unwrap();
        let document: LifecycleDocument = serde_json::from_str(&text).unwrap();
        assert_eq!(document.kind, "lifecycle");
        assert_eq!(document.lifecycle.volumes, result().volumes);
        assert_eq!(document.lifecycle.groups.len(), 2);
    }

    #[test]
    fn markdown_names_what_the_class_lacks() {
        let text = markdown(&result());
        assert!(
            text.contains("\nexpand: not offered by the class\n"),
            "{text}"
        );
        let serial = "provision: volumes are handled one after the other, 2.00 volumes/s";
        assert!(text.contains(serial), "{text}");
    }
}
