//! The stored form of a study and its runs.

use iosonde_job::plan::Plan;
use iosonde_job::{lowercase_hex, read_json_value};
use iosonde_result::compare::{MeasuredResult, ResultPart, parts};
use iosonde_result::fio::import::FioDocument;
use iosonde_result::merged_runs::MergeSummary;
use iosonde_result::run::RunResult;
use iosonde_study::csi::{CsiResult, csi_parts};
use iosonde_study::lifecycle::{LifecycleResult, lifecycle_parts};
use iosonde_study::load::LoadResult;
use iosonde_study::probe::{PhaseRun, ProbePhase, ProbeResult};
use iosonde_study::pts::PtsResult;
use iosonde_study::sweep::SweepResult;
use iosonde_suite::{SuiteResult, suite_parts};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Labels that name the machine. They take precedence over the host name.
const MACHINE_LABELS: [&str; 2] = ["machine", "node"];

/// Runs of a SNIA test that prepare the target.
const PREPARATIONS_OF_PTS: [&str; 2] = ["purge", "fill"];

/// A study to store. Its runs are stored as they end.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyRecord {
    /// Kind of study: `probe`, `fio`, `sweep`, ...
    pub kind: String,
    /// Target: the absolute path, or the name as the user wrote it.
    pub target: String,
    /// Machine that the study ran on, if known.
    pub machine: Option<String>,
    /// Program and version.
    pub program: String,
    /// Start in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The result of the study without its runs.
    pub document: Option<Value>,
    /// Its runs, as far as they are known.
    pub runs: Vec<RunRecord>,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The name of the phase, or of the first job.
    pub name: String,
    /// Start in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Duration in nanoseconds.
    pub elapsed_ns: u64,
    /// The whole result.
    pub document: RunDocument,
    /// Figures that are compared.
    pub parts: Vec<ResultPart>,
}

/// The document of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunDocument {
    /// A result of iosonde.
    Run(Box<RunResult>),
    /// fio's JSON, unchanged.
    Fio(Value),
}

impl RunDocument {
    /// Name of the format in the table `run`.
    pub(super) fn format(&self) -> &'static str {
        match self {
            RunDocument::Run(_) => "run-result",
            RunDocument::Fio(_) => "fio-json",
        }
    }
}

impl RunRecord {
    /// Builds the record of a run of iosonde.
    pub fn from_result(result: RunResult) -> RunRecord {
        let job = result.plan.jobs.first();
        RunRecord {
            name: job.map_or("run".to_owned(), |job| job.name.clone()),
            started_at_ms: result.started_at_ms,
            elapsed_ns: result.elapsed_ns,
            parts: parts(&result),
            document: RunDocument::Run(Box::new(result)),
        }
    }
}

impl RunRecord {
    /// Builds the record of a run that is about to begin.
    pub(super) fn opening(plan: &Plan, labels: &BTreeMap<String, String>) -> RunRecord {
        RunRecord::from_result(RunResult {
            program: program(),
            started_at_ms: now_ms(),
            labels: labels.clone(),
            ..RunResult::unmeasured(plan.clone())
        })
    }

    /// Drops the intervals and the time series.
    pub(super) fn drop_series(&mut self) {
        if let RunDocument::Run(result) = &mut self.document {
            result.intervals = Default::default();
            result.series = Default::default();
            result.pods = Vec::new();
        }
    }
}

impl StudyRecord {
    /// Builds the record of a probe with all its runs.
    pub fn from_probe(mut probe: ProbeResult) -> StudyRecord {
        let runs: Vec<RunRecord> = std::mem::take(&mut probe.runs)
            .into_iter()
            .map(|run| RunRecord::from_result(run.result))
            .collect();
        let mut study = StudyRecord::from_runs("probe", &probe.target, runs);
        study.document = serde_json::to_value(&probe).ok();
        study
    }

    /// Builds the record of a study of one run of iosonde.
    pub fn from_run(result: RunResult) -> StudyRecord {
        let target = target(&result);
        StudyRecord::from_runs("fio", &target, vec![RunRecord::from_result(result)])
    }

    fn from_runs(kind: &str, target: &str, runs: Vec<RunRecord>) -> StudyRecord {
        let first = runs.iter().find_map(|run| match &run.document {
            RunDocument::Run(result) => Some(result),
            RunDocument::Fio(_) => None,
        });
        StudyRecord {
            kind: kind.to_owned(),
            target: target.to_owned(),
            machine: first.and_then(|run| machine(run)),
            program: first.map_or_else(program, |run| run.program.clone()),
            started_at_ms: first.map_or(0, |run| run.started_at_ms),
            labels: first.map(|run| run.labels.clone()).unwrap_or_default(),
            document: None,
            runs,
        }
    }

    /// Builds the record of an imported result of fio.
    pub(super) fn from_fio(fio: FioDocument) -> StudyRecord {
        let name = fio.parts.first().map(|part| part.name.clone());
        let name = name.unwrap_or_else(|| "fio".to_owned());
        StudyRecord {
            kind: "fio".to_owned(),
            target: fio.target.unwrap_or_else(|| name.clone()),
            machine: fio.machine,
            program: fio.version,
            started_at_ms: fio.started_at_ms,
            labels: BTreeMap::new(),
            document: None,
            runs: vec![RunRecord {
                name,
                started_at_ms: fio.started_at_ms,
                elapsed_ns: fio.elapsed_ns,
                document: RunDocument::Fio(fio.json),
                parts: fio.parts,
            }],
        }
    }

    /// Returns the probe with its runs. `None`: another kind, no document, or a single `run`.
    pub fn probe(&self, run: Option<u32>) -> Option<ProbeResult> {
        if self.kind != "probe" || run.is_some() {
            return None;
        }
        let mut probe: ProbeResult = read_json_value(self.document.as_ref()?).ok()?;
        for kept in &self.runs {
            let RunDocument::Run(result) = &kept.document else {
                continue;
            };
            let Some(phase) = ProbePhase::from_key(&kept.name) else {
                continue;
            };
            // A phase whose O_DIRECT was refused ran again; the second run counts.
            probe.runs.retain(|earlier| earlier.phase != phase);
            probe.runs.push(PhaseRun {
                phase,
                result: (**result).clone(),
            });
        }
        Some(probe)
    }

    /// Returns the sweep. `None`: another kind, no document, or a single `run`.
    pub fn sweep(&self, run: Option<u32>) -> Option<SweepResult> {
        self.found("sweep", run)
    }

    /// Returns the load study, under the same conditions as `sweep`.
    pub fn load(&self, run: Option<u32>) -> Option<LoadResult> {
        self.found("load", run)
    }

    /// Returns the SNIA test, under the same conditions as `sweep`.
    pub fn pts(&self, run: Option<u32>) -> Option<PtsResult> {
        self.found("pts", run)
    }

    /// Returns the life cycle of volumes, under the same conditions as `sweep`.
    pub fn lifecycle(&self, run: Option<u32>) -> Option<LifecycleResult> {
        self.found("lifecycle", run)
    }

    /// Returns the data services of a class, under the same conditions as `sweep`.
    pub fn csi(&self, run: Option<u32>) -> Option<CsiResult> {
        self.found("csi", run)
    }

    /// Returns the figures of a study whose document has more than its runs: runs of a suite are
    /// also samples of its sweeps, and commands have no I/O.
    pub(crate) fn parts_of_document(&self) -> Option<Vec<ResultPart>> {
        if let Some(lifecycle) = self.lifecycle(None) {
            return Some(lifecycle_parts(&lifecycle));
        }
        // An interrupted study has runs, but no figures of its own.
        let is_whole = |suite: &SuiteResult| {
            !suite.interrupted && suite.steps.iter().all(|step| step.is_whole())
        };
        let suite = self.suite(None).filter(is_whole);
        if let Some(suite) = suite.filter(|suite| !suite.steps.is_empty()) {
            return Some(suite_parts(&suite));
        }
        self.csi(None).map(|csi| csi_parts(&csi))
    }

    /// Reads the document of a study of this kind, unless a single run is asked for.
    fn found<Found: DeserializeOwned>(&self, kind: &str, run: Option<u32>) -> Option<Found> {
        if self.kind != kind || run.is_some() {
            return None;
        }
        read_json_value(self.document.as_ref()?).ok()
    }

    /// Returns the suite, under the same conditions as `sweep`.
    pub fn suite(&self, run: Option<u32>) -> Option<SuiteResult> {
        self.found("suite", run)
    }

    /// Returns the runs of a sum, under the same conditions as `sweep`.
    pub fn merge(&self, run: Option<u32>) -> Option<MergeSummary> {
        self.found("merge", run)
    }

    /// Builds a study from a document in a file, which does not hold the runs.
    pub(super) fn without_runs(
        kind: &str,
        target: &str,
        program: String,
        found: Value,
    ) -> StudyRecord {
        StudyRecord {
            document: Some(found),
            program,
            ..StudyRecord::from_runs(kind, target, Vec::new())
        }
    }

    /// Converts the study to one result of a comparison. The layout is not compared.
    pub fn measured(&self, name: &str) -> MeasuredResult {
        let parts = self.runs.iter().flat_map(|run| &run.parts);
        MeasuredResult {
            name: name.to_owned(),
            machine: self.machine.clone(),
            parts: match self.parts_of_document() {
                Some(parts) => compared_parts(&self.kind, parts.iter()),
                None => compared_parts(&self.kind, parts),
            },
        }
    }

    /// Adds labels. A label that names the machine sets `machine`.
    pub fn label(&mut self, labels: &BTreeMap<String, String>) {
        self.labels.extend(labels.clone());
        if let Some(machine) = labelled_machine(labels) {
            self.machine = Some(machine);
        }
    }

    /// Identifies a measurement. Layout of the document and labels do not change the digest.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.kind.as_bytes());
        if self.runs.is_empty() {
            hash.update(
                self.document
                    .as_ref()
                    .map(Value::to_string)
                    .unwrap_or_default(),
            );
        }
        // Runs without I/O are missing in some documents.
        for run in self.runs.iter().filter(|run| !run.parts.is_empty()) {
            hash.update(run.started_at_ms.to_le_bytes());
            hash.update(run.elapsed_ns.to_le_bytes());
            for part in &run.parts {
                hash.update(part.name.as_bytes());
                for figure in &part.figures {
                    hash.update(figure.value.to_bits().to_le_bytes());
                }
            }
        }
        lowercase_hex(&hash.finalize()[..16])
    }
}

/// Returns the parts of a study that are results.
pub(super) fn compared_parts<'a>(
    kind: &str,
    parts: impl Iterator<Item = &'a ResultPart>,
) -> Vec<ResultPart> {
    parts
        // A job of fio may have any name, also that of a preparation.
        .filter(|part| match kind {
            "fio" | "merge" => true,
            "pts" => !PREPARATIONS_OF_PTS.contains(&part.name.as_str()),
            _ => part.name != ProbePhase::Layout.key(),
        })
        .cloned()
        .collect()
}

/// Returns the document of a probe without its runs, which are stored on their own.
pub fn probe_document(probe: &mut ProbeResult) -> Option<Value> {
    let runs = std::mem::take(&mut probe.runs);
    let document = serde_json::to_value(&*probe).ok();
    probe.runs = runs;
    document
}

/// Name and version of this program, as results have them.
pub(super) fn program() -> String {
    concat!("iosonde ", env!("CARGO_PKG_VERSION")).to_owned()
}

pub(super) fn labelled_machine(labels: &BTreeMap<String, String>) -> Option<String> {
    let found = MACHINE_LABELS.iter().find_map(|key| labels.get(*key));
    found.cloned()
}

/// Returns the machine of a run: a label, else the host name.
pub(super) fn machine(result: &RunResult) -> Option<String> {
    labelled_machine(&result.labels).or_else(|| result.host.hostname.clone())
}

/// Returns the target of the first job that names one, else `.`.
fn target(result: &RunResult) -> String {
    named_target(&result.plan).map_or(".".to_owned(), |names| names.join(":"))
}

/// Returns the files, directories or simulated device of the first job that names any.
pub(super) fn named_target(plan: &Plan) -> Option<Vec<String>> {
    plan.jobs.iter().find_map(|job| {
        if let Some(device) = &job.io.sim {
            return Some(vec![format!("sim:{device}")]);
        }
        let files = &job.files;
        let names = match (&files.filenames[..], &files.directories[..]) {
            ([], []) => return None,
            ([], directories) => directories.to_vec(),
            (names, []) => names.to_vec(),
            // As in fio, all files of `filename` are in the first directory.
            (names, [directory, ..]) => {
                let directory = directory.trim_end_matches('/');
                names
                    .iter()
                    .map(|name| format!("{directory}/{name}"))
                    .collect()
            }
        };
        Some(names)
    })
}

/// Splits `key=value`.
pub fn split_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
