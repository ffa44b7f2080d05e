//! The runs of a stored study for a user who must choose one.

use iosonde_history::{RunRecord, StudyRecord};
use iosonde_job::escape_control_characters;
use iosonde_study::probe::ProbePhase;

/// Most runs that are listed.
const LISTED_MAX: usize = 10;

/// Returns a line for each run, `name.N` and what it measured, and the number of further runs.
pub(super) fn numbered_runs(name: &str, study: &StudyRecord) -> String {
    let shown = (1..).zip(&study.runs).take(LISTED_MAX);
    let mut lines: Vec<String> = shown
        .map(|(number, run)| format!("  {name}.{number} {}", measured(&study.kind, run)))
        .collect();
    let count = study.runs.len();
    if count > LISTED_MAX {
        let more = count - LISTED_MAX;
        lines.push(format!("  and {more} more, to {name}.{count}"));
    }
    lines.join("\n")
}

/// Workload of a run, in one line.
fn measured(kind: &str, run: &RunRecord) -> String {
    let phase = ProbePhase::from_key(&run.name).filter(|_| kind == "probe");
    if let Some(phase) = phase {
        let title = phase.title();
        return match phase {
            // The title has the depth.
            ProbePhase::ReadLatency | ProbePhase::WriteLatency => title.to_owned(),
            _ => format!("{title}, depth {}", phase.iodepth()),
        };
    }
    let text = match run.parts.first() {
        Some(part) => format!("{}: {}", run.name, part.pattern),
        None => run.name.clone(),
    };
    escape_control_characters(&text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_history::RunDocument;
    use iosonde_result::compare::{IoPattern, ResultPart};
    use std::collections::BTreeMap;

    fn study(kind: &str, names: &[&str]) -> StudyRecord {
        let run = |name: &&str| RunRecord {
            name: (*name).to_owned(),
            started_at_ms: 0,
            elapsed_ns: 0,
            document: RunDocument::Fio(serde_json::Value::Null),
            parts: vec![ResultPart {
                name: (*name).to_owned(),
                pattern: IoPattern {
                    rw: "randread".to_owned(),
                    bs: "4096".to_owned(),
                    iodepth: 2,
                    numjobs: 1,
                },
                figures: Vec::new(),
                role: Default::default(),
            }],
        };
        StudyRecord {
            kind: kind.to_owned(),
            target: "/data".to_owned(),
            machine: None,
            program: String::new(),
            started_at_ms: 0,
            labels: BTreeMap::new(),
            document: None,
            runs: names.iter().map(run).collect(),
        }
    }

    #[test]
    fn phases_of_a_probe_are_listed_in_words() {
        let probe = study("probe", &["layout", "read_latency", "random_read"]);
        let lines = numbered_runs("8ee054", &probe);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines,
            [
                "  8ee054.1 layout, sequential write, depth 8",
                "  8ee054.2 random read, depth 1",
                "  8ee054.3 random read, depth 64",
            ]
        );
    }

    #[test]
    fn runs_beyond_ten_are_counted() {
        let names = ["a\nb"; 13];
        let lines = numbered_runs("8ee054", &study("sweep", &names));
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 11);
        let pattern = "randread, bs 4096, iodepth 2, numjobs 1";
        assert_eq!(lines[9], format!("  8ee054.10 a b: {pattern}"));
        assert_eq!(lines[10], "  and 3 more, to 8ee054.13");
    }
}
