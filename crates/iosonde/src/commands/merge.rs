//! `iosonde merge`: adds runs of one workload to one result, which is stored like any other.

use super::keep_study;
use super::numbered_runs::one_run_remedy;
use super::result_ref::ResultRef;
use crate::args::MergeArgs;
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_history::{HistoryWriter, Loaded, RunDocument, StudyRecord};
use iosonde_report::figures;
use iosonde_report::format::Format;
use iosonde_report::text_table::wrapped;
use iosonde_result::compare::parts;
use iosonde_result::fio;
use iosonde_result::merged_runs::{RunToMerge, merge_runs};
use iosonde_result::run::RunResult;
use std::path::Path;

/// Most targets that the target of a sum names.
const NAMED_TARGETS_MAX: usize = 3;

/// Adds the runs, prints the sum and stores it.
pub(crate) fn run(args: &MergeArgs) -> Result<(), CommandError> {
    let output = Output::open_report(args.output.as_deref())?;
    let mut selected = SelectedRuns::default();
    for word in &args.runs {
        selected.add(word, args)?;
    }
    let target = selected.target();
    let (mut result, summary) = merge_runs(selected.runs, args.timing.map(Into::into))
        .map_err(|error| CommandError::usage(error.to_string(), error.remedy()))?;
    let mut history_writer = HistoryWriter::open(&args.keep.options())?;
    if let Some(name) = &args.name {
        history_writer.label("name", name);
    }
    history_writer.begin("merge", &target);
    history_writer.label_run(&mut result);
    history_writer.store_run(&result);
    let kept = keep_study(&mut history_writer, &summary);
    let written = merged_text(&result, args.format).and_then(|text| output.save(&text));
    super::finish_command([written, kept], Ok(()))
}

/// Runs to add, and the targets of their studies.
#[derive(Default)]
struct SelectedRuns {
    runs: Vec<RunToMerge>,
    targets: Vec<String>,
}

impl SelectedRuns {
    /// Adds the runs that an argument names.
    fn add(&mut self, word: &str, args: &MergeArgs) -> Result<(), CommandError> {
        let file = args.keep.store.as_deref();
        match ResultRef::resolve(word, file)? {
            ResultRef::Stored(loaded) => self.add_stored(*loaded, file),
            ResultRef::Label(store, studies) => {
                for study in &studies {
                    self.add_stored(store.load(&study.id)?, file)?;
                }
                Ok(())
            }
            ResultRef::File(studies) => {
                let is_one = studies.len() == 1;
                for (number, study) in (1..).zip(studies) {
                    let name = match is_one {
                        true => word.to_owned(),
                        false => format!("{word}, result {number}"),
                    };
                    self.add_study(
                        (name, None),
                        study,
                        "import the file, and name one run of its result",
                    )?;
                }
                Ok(())
            }
        }
    }

    /// Adds a run of the history in `file`.
    fn add_stored(&mut self, loaded: Loaded, file: Option<&Path>) -> Result<(), CommandError> {
        let name = loaded.name();
        if loaded.summary.finished_at_ms.is_none() {
            return Err(CommandError::usage(
                format!("{name} was cut off or is still being measured"),
                "leave the result out, or wait until its measurement ends",
            ));
        }
        // A study of one run has the same run with and without its number.
        let id = format!("{}.{}", loaded.summary.id, loaded.run.unwrap_or(1));
        let help = match loaded.study.runs.is_empty() {
            true => "name a result of `iosonde fio`, or one run of another".to_owned(),
            false => {
                let example = format!("{name}.1");
                let remedy =
                    one_run_remedy((example.as_str(), 1), (name.as_str(), &loaded.study), file);
                format!("name one run, {remedy}")
            }
        };
        self.add_study((name, Some(id)), loaded.study, &help)
    }

    /// Adds the only run of a study, with its name and id. `help` tells how to choose one run.
    fn add_study(
        &mut self,
        (name, id): (String, Option<String>),
        study: StudyRecord,
        help: &str,
    ) -> Result<(), CommandError> {
        let members = study.merge(None).map_or(Vec::new(), |sum| sum.runs);
        let kind = members.first().map_or(&study.kind, |run| &run.kind);
        let kind = kind.clone();
        let count = study.runs.len();
        let mut results = Vec::new();
        for run in study.runs {
            let RunDocument::Run(result) = run.document else {
                return Err(CommandError::usage(
                    format!("{name} is a result of fio, which iosonde stores without histograms"),
                    "run the job with `iosonde fio`, whose results can be added",
                ));
            };
            results.push(result);
        }
        let (Some(result), true) = (results.pop(), results.is_empty()) else {
            let problem = match count {
                0 => format!("{name} is stored without its runs"),
                _ => format!("{name} has {count} runs, which measured different things"),
            };
            return Err(CommandError::usage(problem, help));
        };
        if !self.targets.contains(&study.target) {
            self.targets.push(study.target);
        }
        self.runs.push(RunToMerge {
            name,
            id,
            kind,
            result: *result,
            members,
        });
        Ok(())
    }

    /// The target of the sum.
    fn target(&self) -> String {
        match self.targets.len() {
            count if count > NAMED_TARGETS_MAX => format!("{count} targets"),
            _ => self.targets.join(", "),
        }
    }
}

/// Formats the sum.
fn merged_text(result: &RunResult, format: Format) -> Result<String, CommandError> {
    let parts = parts(result);
    match format {
        Format::Table => {
            let findings = result.findings().into_iter().chain(result.notes.clone());
            let findings: String = findings
                .map(|finding| wrapped(&format!("note: {finding}")))
                .collect();
            Ok(figures::table(&parts) + &findings)
        }
        Format::Json => {
            let text = serde_json::to_string_pretty(result).map_err(anyhow::Error::from)?;
            Ok(text + "\n")
        }
        Format::Csv => Ok(figures::figures_csv(&parts)),
        Format::Markdown => Ok(figures::markdown(&parts)),
        Format::FioJson => {
            let mut text = Vec::new();
            fio::write_json(&mut text, &fio::fio_json(result, true))
                .map_err(anyhow::Error::from)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
    }
}
