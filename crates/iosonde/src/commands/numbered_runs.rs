//! The runs of a stored study for a user who must choose one.

use super::show_command::store_option;
use iosonde_history::{RunRecord, StudyRecord};
use iosonde_job::escape_control_characters;
use iosonde_study::probe::ProbePhase;
use std::path::Path;

/// Returns the remedy for a study of several runs: an example with the run of this number, what
/// that run measured, and the command that lists all runs. `name` is that of the study, and `store`
/// is the file of the history.
pub(super) fn one_run_remedy(
    (example, number): (&str, usize),
    (name, study): (&str, &StudyRecord),
    store: Option<&Path>,
) -> String {
    debug_assert!(number >= 1, "runs of {name} are numbered from 1");
    let run = study.runs.get(number - 1);
    let measured = run.map_or(String::new(), |run| {
        format!(" ({})", measured(&study.kind, run))
    });
    let (count, options) = (study.runs.len(), store_option(store));
    let all = format!("`iosonde show {name} --percentiles 99{options}`");
    format!("for example {example}{measured}; {all} lists all {count} runs")
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
    fn phases_of_a_probe_have_words() {
        let probe = study("probe", &["layout", "read_latency", "random_read"]);
        for (number, words) in [
            (1, "layout, sequential write, depth 8"),
            (2, "random read, depth 1"),
            (3, "random read, depth 64"),
        ] {
            let remedy = one_run_remedy(("8ee054.N", number), ("8ee054", &probe), None);
            let example = format!("for example 8ee054.N ({words}); ");
            assert!(remedy.starts_with(&example), "{remedy}");
        }
    }

    #[test]
    fn remedy_for_many_runs_has_one_line() {
        let sweep = study("sweep", &["a\nb"; 13]);
        let store = Some(Path::new("my results.db"));
        assert_eq!(
            one_run_remedy(("8ee054.13", 13), ("8ee054", &sweep), store),
            "for example 8ee054.13 (a b: randread, bs 4096, iodepth 2, numjobs 1); `iosonde show \
             8ee054 --percentiles 99 --store 'my results.db'` lists all 13 runs"
        );
    }
}
