//! Start of many jobs: memory per worker, and time from start to end.

use super::cpu::CpuTime;
use super::program::{ComparedBinary, ProgramRuns};
use super::ratio::IntervalEstimate;
use super::report::interval;
use super::sys::child_usage::ChildUsage;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::fmt::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Numbers of jobs. The memory of a worker is the difference of the two by the workers between
/// them: a program of few jobs may need less memory than the bench that starts it.
const FEW_JOBS: u32 = 64;
const MANY_JOBS: u32 = 256;

/// I/Os of a job, all in flight at once.
const IOS_OF_JOB: u32 = 64;

/// Figures of one run with few jobs and one with many.
#[derive(Debug, Clone, Copy, Serialize)]
struct ManyJobsSample {
    /// Largest resident memory of the process with many jobs.
    peak_kib: f64,
    /// Memory that one more job takes.
    worker_kib: f64,
    /// From the start to the end of the process with many jobs.
    seconds: f64,
    /// CPU time of the process with many jobs.
    cpu: CpuTime,
}

/// All runs of a program.
#[derive(Debug, Serialize)]
struct ManyJobsSeries {
    binary: ComparedBinary,
    samples: Vec<ManyJobsSample>,
}

impl ManyJobsSeries {
    fn values(&self, figure: fn(&ManyJobsSample) -> f64) -> Vec<f64> {
        self.samples.iter().map(figure).collect()
    }
}

/// Results of all programs.
#[derive(Debug, Serialize)]
pub(super) struct ManyJobsComparison {
    jobs: u32,
    series: Vec<ManyJobsSeries>,
}

/// Heading of a column, and its figure.
type ManyJobsColumn = (&'static str, fn(&ManyJobsSample) -> f64);

const FIGURES: [ManyJobsColumn; 4] = [
    ("peak MiB", |sample| sample.peak_kib / 1024.0),
    ("KiB per worker", |sample| sample.worker_kib),
    ("seconds", |sample| sample.seconds),
    ("CPU seconds", |sample| {
        (sample.cpu.user_us + sample.cpu.system_us) / 1e6
    }),
];

impl ManyJobsComparison {
    /// Runs the programs in turn.
    pub(super) fn measure(
        programs: &ProgramRuns,
        rounds: usize,
        interrupted: &AtomicBool,
    ) -> Result<ManyJobsComparison> {
        let binaries = [
            Some(ComparedBinary::Fio),
            Some(ComparedBinary::Iosonde),
            programs
                .before
                .is_some()
                .then_some(ComparedBinary::IosondeBefore),
        ];
        let mut series: Vec<ManyJobsSeries> = binaries
            .into_iter()
            .flatten()
            .map(|binary| ManyJobsSeries {
                binary,
                samples: Vec::new(),
            })
            .collect();
        for _ in 0..rounds {
            for series in &mut series {
                let sample = measure_once(programs, series.binary);
                if interrupted.load(Relaxed) {
                    bail!("interrupted");
                }
                series.samples.push(sample?);
            }
        }
        Ok(ManyJobsComparison {
            jobs: MANY_JOBS,
            series,
        })
    }

    /// The comparison as a table.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "\n{} jobs (null engine, {IOS_OF_JOB} I/Os each, threads)\n  {:<26}",
            self.jobs, "program"
        );
        for (heading, _) in FIGURES {
            let _ = write!(text, " {heading:<24}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        for series in &self.series {
            let _ = write!(text, "  {:<26}", series.binary.name());
            for (_, figure) in FIGURES {
                let mean = interval(IntervalEstimate::mean(&series.values(figure)));
                let _ = write!(text, " {mean:<24}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        for other in [ComparedBinary::Fio, ComparedBinary::IosondeBefore] {
            text.push_str(&self.ratios(other));
        }
        text
    }

    /// The ratios of all figures of iosonde to another program, or nothing if that did not run.
    fn ratios(&self, other: ComparedBinary) -> String {
        let find = |binary| self.series.iter().find(|series| series.binary == binary);
        let (Some(ours), Some(theirs)) = (find(ComparedBinary::Iosonde), find(other)) else {
            return String::new();
        };
        let ratios = FIGURES.map(|(heading, figure)| {
            let ratio = IntervalEstimate::ratio(&ours.values(figure), &theirs.values(figure));
            format!("{heading} {}", interval(ratio))
        });
        let names = (ours.binary.name(), theirs.binary.name());
        format!("  {} / {}: {}\n", names.0, names.1, ratios.join(", "))
    }
}

/// Runs a program with few and with many jobs.
fn measure_once(programs: &ProgramRuns, binary: ComparedBinary) -> Result<ManyJobsSample> {
    let (few, _) = run_jobs(programs, binary, FEW_JOBS)?;
    let (many, seconds) = run_jobs(programs, binary, MANY_JOBS)?;
    Ok(ManyJobsSample {
        peak_kib: many.peak_kib,
        worker_kib: (many.peak_kib - few.peak_kib) / f64::from(MANY_JOBS - FEW_JOBS),
        seconds,
        cpu: many.cpu,
    })
}

/// Runs a program with some jobs. Returns the usage of its process and the seconds that it took.
fn run_jobs(
    programs: &ProgramRuns,
    binary: ComparedBinary,
    jobs: u32,
) -> Result<(ChildUsage, f64)> {
    let errors = tempfile::NamedTempFile::new().context("a file for messages")?;
    let mut command = programs.fio_command(binary)?;
    command
        .args(words(jobs))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors.reopen().context("a file for messages")?);
    let start = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("starting {command:?}"))?;
    let usage = ChildUsage::wait(child).with_context(|| format!("waiting for {command:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(
        usage.status.success(),
        "{command:?} ended with {}: {}",
        usage.status,
        std::fs::read_to_string(errors.path())
            .unwrap_or_default()
            .trim()
    );
    Ok((usage, seconds))
}

/// Options of the jobs, which fio and iosonde both accept.
fn words(jobs: u32) -> Vec<String> {
    vec![
        "--name=bench".to_owned(),
        "--ioengine=null".to_owned(),
        "--rw=randread".to_owned(),
        "--bs=4k".to_owned(),
        format!("--iodepth={IOS_OF_JOB}"),
        format!("--size={}", IOS_OF_JOB * 4096),
        format!("--numjobs={jobs}"),
        "--thread=1".to_owned(),
        "--group_reporting".to_owned(),
        "--output-format=json".to_owned(),
        "--eta=never".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(binary: ComparedBinary, worker_kib: f64) -> ManyJobsSeries {
        let sample = ManyJobsSample {
            peak_kib: 2048.0 + 256.0 * worker_kib,
            worker_kib,
            seconds: 0.5,
            cpu: CpuTime {
                user_us: 100_000.0,
                system_us: 150_000.0,
            },
        };
        ManyJobsSeries {
            binary,
            samples: vec![sample; 2],
        }
    }

    #[test]
    fn table_of_many_jobs_has_memory_and_time_by_program() {
        let comparison = ManyJobsComparison {
            jobs: MANY_JOBS,
            series: vec![
                series(ComparedBinary::Fio, 400.0),
                series(ComparedBinary::Iosonde, 100.0),
            ],
        };
        let text = comparison.text();
        for words in [
            "256 jobs (null engine, 64 I/Os each, threads)\n",
            "KiB per worker",
            "27.000 [27.000, 27.000]",
            "0.250 [0.250, 0.250]\n",
            "  iosonde / fio: peak MiB ",
            "KiB per worker 0.250 [0.250, 0.250], seconds 1.000",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!text.contains("before") && !text.contains(" \n"), "{text}");
    }

    #[test]
    fn failed_jobs_report_their_messages() {
        let programs = ProgramRuns {
            fio: "false".into(),
            iosonde: "true".into(),
            before: None,
            length: std::time::Duration::ZERO,
        };
        let error = run_jobs(&programs, ComparedBinary::Fio, 1).unwrap_err();
        assert!(error.to_string().contains("exit status: 1"), "{error}");
        let (usage, seconds) = run_jobs(&programs, ComparedBinary::Iosonde, 1).unwrap();
        assert!(usage.peak_kib > 0.0 && seconds > 0.0);
        assert!(words(256).contains(&"--numjobs=256".to_owned()));
    }
}
