//! What is kept of a study and its runs.

use iosonde_job::plan::Plan;
use iosonde_result::compare::{Measured, Part, parts};
use iosonde_result::fio::import::FioDocument;
use iosonde_result::run::{FORMAT, RunResult};
use iosonde_study::load::LoadResult;
use iosonde_study::probe::{Phase, PhaseRun, ProbeResult};
use iosonde_study::pts::PtsResult;
use iosonde_study::suite::SuiteResult;
use iosonde_study::sweep::SweepResult;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Labels that name the machine, before the host's own name.
const MACHINE_LABELS: [&str; 2] = ["machine", "node"];

/// Runs of a test after SNIA's specification that make a target ready for it.
const PREPARATIONS_OF_PTS: [&str; 2] = ["purge", "fill"];

/// A study to be kept, without its runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeptStudy {
    /// What measured it: `probe`, `fio`, `sweep`, ...
    pub(crate) kind: String,
    /// Target: the absolute path, or the name as the user wrote it.
    pub(crate) target: String,
    /// Where it ran, where that is known.
    pub(crate) machine: Option<String>,
    /// Program and version.
    pub(crate) program: String,
    /// Milliseconds of the Unix epoch.
    pub(crate) started_at_ms: u64,
    /// Labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// What the study found beyond its runs.
    pub(crate) document: Option<Value>,
    /// Its runs, where they are known.
    pub(crate) runs: Vec<KeptRun>,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeptRun {
    /// The phase, or the first job.
    pub(crate) name: String,
    /// Milliseconds of the Unix epoch.
    pub(crate) started_at_ms: u64,
    /// How long it took.
    pub(crate) elapsed_ns: u64,
    /// All that is known.
    pub(crate) document: Document,
    /// Its figures.
    pub(crate) parts: Vec<Part>,
}

/// The document of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Document {
    /// Our own.
    Run(Box<RunResult>),
    /// fio's JSON, as it was.
    Fio(Value),
}

impl Document {
    /// Name of its format in the table of runs.
    pub(super) fn format(&self) -> &'static str {
        match self {
            Document::Run(_) => "run-result",
            Document::Fio(_) => "fio-json",
        }
    }
}

impl KeptRun {
    /// Of a run of ours.
    pub(crate) fn of(result: RunResult) -> KeptRun {
        let job = result.plan.jobs.first();
        KeptRun {
            name: job.map_or("run".to_owned(), |job| job.name.clone()),
            started_at_ms: result.started_at_ms,
            elapsed_ns: result.elapsed_ns,
            parts: parts(&result),
            document: Document::Run(Box::new(result)),
        }
    }
}

impl KeptRun {
    /// Of a run that begins.
    pub(super) fn opening(plan: &Plan, labels: &BTreeMap<String, String>) -> KeptRun {
        KeptRun::of(RunResult {
            format: FORMAT,
            program: program(),
            started_at_ms: super::keeper::now_ms(),
            elapsed_ns: 0,
            plan: plan.clone(),
            host: Default::default(),
            targets: Vec::new(),
            labels: labels.clone(),
            workers: Vec::new(),
            disks: Vec::new(),
            intervals: Default::default(),
            series: Default::default(),
            pods: Vec::new(),
            nodes: Vec::new(),
            ceph: None,
            nfs: Vec::new(),
            events: Vec::new(),
            verdicts: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Forgets what was measured from interval to interval.
    pub(super) fn drop_series(&mut self) {
        if let Document::Run(result) = &mut self.document {
            result.intervals = Default::default();
            result.series = Default::default();
            result.pods = Vec::new();
        }
    }
}

impl KeptStudy {
    /// A probe with all its runs.
    pub(crate) fn of_probe(mut probe: ProbeResult) -> KeptStudy {
        let runs: Vec<KeptRun> = std::mem::take(&mut probe.runs)
            .into_iter()
            .map(|run| KeptRun::of(run.result))
            .collect();
        let mut study = KeptStudy::of_runs("probe", &probe.target, runs);
        study.document = serde_json::to_value(&probe).ok();
        study
    }

    /// One run of ours.
    pub(crate) fn of_run(result: RunResult) -> KeptStudy {
        let target = target(&result);
        KeptStudy::of_runs("fio", &target, vec![KeptRun::of(result)])
    }

    fn of_runs(kind: &str, target: &str, runs: Vec<KeptRun>) -> KeptStudy {
        let first = runs.iter().find_map(|run| match &run.document {
            Document::Run(result) => Some(result),
            Document::Fio(_) => None,
        });
        KeptStudy {
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

    /// A result of fio.
    pub(crate) fn of_fio(fio: FioDocument) -> KeptStudy {
        let name = fio.parts.first().map(|part| part.name.clone());
        let name = name.unwrap_or_else(|| "fio".to_owned());
        KeptStudy {
            kind: "fio".to_owned(),
            target: fio.target.unwrap_or_else(|| name.clone()),
            machine: fio.machine,
            program: fio.version,
            started_at_ms: fio.started_at_ms,
            labels: BTreeMap::new(),
            document: None,
            runs: vec![KeptRun {
                name,
                started_at_ms: fio.started_at_ms,
                elapsed_ns: fio.elapsed_ns,
                document: Document::Fio(fio.json),
                parts: fio.parts,
            }],
        }
    }

    /// The probe with its runs, if it is one that came to its end and all of it is wanted (no single `run`).
    pub(crate) fn probe(&self, run: Option<u32>) -> Option<ProbeResult> {
        if self.kind != "probe" || run.is_some() {
            return None;
        }
        let mut probe: ProbeResult = serde_json::from_value(self.document.clone()?).ok()?;
        for kept in &self.runs {
            let Document::Run(result) = &kept.document else {
                continue;
            };
            let Some(phase) = Phase::of_key(&kept.name) else {
                continue;
            };
            // A phase that O_DIRECT was refused to ran a second time, which is the one that counts.
            probe.runs.retain(|earlier| earlier.phase != phase);
            probe.runs.push(PhaseRun {
                phase,
                result: (**result).clone(),
            });
        }
        Some(probe)
    }

    /// The sweep, if it is one that came to its end and all of it is wanted (no single `run`).
    pub(crate) fn sweep(&self, run: Option<u32>) -> Option<SweepResult> {
        self.found("sweep", run)
    }

    /// The load study, on the same terms.
    pub(crate) fn load(&self, run: Option<u32>) -> Option<LoadResult> {
        self.found("load", run)
    }

    /// The test after SNIA's specification, on the same terms.
    pub(crate) fn pts(&self, run: Option<u32>) -> Option<PtsResult> {
        self.found("pts", run)
    }

    /// What a study of this kind found, if all of it is wanted.
    fn found<Found: DeserializeOwned>(&self, kind: &str, run: Option<u32>) -> Option<Found> {
        if self.kind != kind || run.is_some() {
            return None;
        }
        serde_json::from_value(self.document.clone()?).ok()
    }

    /// What a suite found, on the same terms.
    pub(crate) fn suite(&self, run: Option<u32>) -> Option<SuiteResult> {
        self.found("suite", run)
    }

    /// What a file says that a study of this kind has found. Its runs are not in it.
    pub(super) fn without_runs(
        kind: &str,
        target: &str,
        program: String,
        found: Value,
    ) -> KeptStudy {
        KeptStudy {
            document: Some(found),
            program,
            ..KeptStudy::of_runs(kind, target, Vec::new())
        }
    }

    /// As one result of a comparison. Laying out is not what a probe measures.
    pub(crate) fn measured(&self, name: &str) -> Measured {
        let parts = self.runs.iter().flat_map(|run| &run.parts);
        Measured {
            name: name.to_owned(),
            machine: self.machine.clone(),
            parts: compared_parts(&self.kind, parts),
        }
    }

    /// Adds labels; one that names the machine says where it ran.
    pub(crate) fn label(&mut self, labels: &BTreeMap<String, String>) {
        self.labels.extend(labels.clone());
        if let Some(machine) = labelled_machine(labels) {
            self.machine = Some(machine);
        }
    }

    /// The same for the same measurement, however its document was laid out and labelled.
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
        // What moved nothing is not in every document.
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
        super::id::hexadecimal(&hash.finalize()[..16])
    }
}

/// The parts of a study that are its results.
pub(super) fn compared_parts<'a>(kind: &str, parts: impl Iterator<Item = &'a Part>) -> Vec<Part> {
    parts
        // Jobs of fio may be called anything.
        .filter(|part| match kind {
            "fio" => true,
            "pts" => !PREPARATIONS_OF_PTS.contains(&part.name.as_str()),
            _ => part.name != Phase::Layout.key(),
        })
        .cloned()
        .collect()
}

/// A probe without its runs, which are kept for themselves.
pub(crate) fn probe_document(probe: &mut ProbeResult) -> Option<Value> {
    let runs = std::mem::take(&mut probe.runs);
    let document = serde_json::to_value(&*probe).ok();
    probe.runs = runs;
    document
}

/// This program, as results name it.
pub(super) fn program() -> String {
    concat!("iosonde ", env!("CARGO_PKG_VERSION")).to_owned()
}

fn labelled_machine(labels: &BTreeMap<String, String>) -> Option<String> {
    let found = MACHINE_LABELS.iter().find_map(|key| labels.get(*key));
    found.cloned()
}

/// Where a run took place.
pub(super) fn machine(result: &RunResult) -> Option<String> {
    labelled_machine(&result.labels).or_else(|| result.host.hostname.clone())
}

/// Where the jobs' data are: what the first job that says so names.
fn target(result: &RunResult) -> String {
    named_target(&result.plan).map_or(".".to_owned(), |names| names.join(":"))
}

/// The names that it has, if any.
pub(super) fn named_target(plan: &Plan) -> Option<Vec<String>> {
    plan.jobs.iter().find_map(|job| {
        if let Some(device) = &job.io.sim {
            return Some(vec![format!("sim:{device}")]);
        }
        let files = &job.files;
        let names = match (&files.filenames[..], &files.directories[..]) {
            ([], []) => return None,
            ([], directories) => directories,
            (names, _) => names,
        };
        Some(names.to_vec())
    })
}

/// `key=value`.
pub(crate) fn split_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("write it as key=value".to_owned()),
    }
}
