//! The compared programs. Each run is a new process with the same job.

use super::bare_loop;
use super::bench_target::{BenchEngine, BenchTarget};
use super::cpu::CpuTime;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::UsageWho;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// I/Os per submission in comparisons of batches.
const BATCH: u32 = 16;

/// An executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ComparedBinary {
    Fio,
    Iosonde,
    /// An earlier build of iosonde (`--before`).
    IosondeBefore,
    /// The bare loop: calls of the engine and little else.
    BareLoop,
}

impl ComparedBinary {
    /// Name of the executable in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            ComparedBinary::Fio => "fio",
            ComparedBinary::Iosonde => "iosonde",
            ComparedBinary::IosondeBefore => "before",
            ComparedBinary::BareLoop => "bare loop",
        }
    }
}

/// iodepth, batches, engine and workers of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LoopShape {
    /// Depth 64 without batch options.
    Plain,
    /// Depth 64 in submissions of 16, with registered files and fixed buffers.
    InBatches,
    /// Depth 4 without batch options.
    Depth4,
    /// Depth 1.
    Depth1,
    /// libaio at depth 64.
    Libaio,
    /// libaio at depth 1.
    LibaioDepth1,
    /// pread(2).
    Psync,
    /// Two threads with the job of `Plain`.
    TwoWorkers,
}

impl LoopShape {
    /// All shapes in the order of measurement.
    pub(super) const ALL: [LoopShape; 8] = [
        LoopShape::Plain,
        LoopShape::InBatches,
        LoopShape::Depth4,
        LoopShape::Depth1,
        LoopShape::Libaio,
        LoopShape::LibaioDepth1,
        LoopShape::Psync,
        LoopShape::TwoWorkers,
    ];

    fn depth(self) -> u32 {
        match self {
            LoopShape::Plain | LoopShape::InBatches | LoopShape::Libaio | LoopShape::TwoWorkers => {
                64
            }
            LoopShape::Depth4 => 4,
            LoopShape::Depth1 | LoopShape::LibaioDepth1 | LoopShape::Psync => 1,
        }
    }

    /// `ioengine` of the job on files.
    pub(super) fn engine(self) -> &'static str {
        match self {
            LoopShape::Plain
            | LoopShape::InBatches
            | LoopShape::Depth4
            | LoopShape::Depth1
            | LoopShape::TwoWorkers => "io_uring",
            LoopShape::Libaio | LoopShape::LibaioDepth1 => "libaio",
            LoopShape::Psync => "psync",
        }
    }

    /// Threads that run the job.
    fn workers(self) -> u32 {
        match self {
            LoopShape::TwoWorkers => 2,
            _ => 1,
        }
    }

    /// Options of the job beside engine and depth.
    fn extra_words(self) -> Vec<String> {
        let words: &[&str] = match self {
            LoopShape::InBatches => {
                let batch = format!("--iodepth_batch_submit={BATCH}");
                return vec![
                    batch,
                    "--registerfiles".to_owned(),
                    "--fixedbufs".to_owned(),
                ];
            }
            LoopShape::TwoWorkers => &["--numjobs=2", "--thread=1", "--group_reporting"],
            _ => &[],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Addition to the name of the executable in the table.
    fn suffix(self) -> &'static str {
        match self {
            LoopShape::Plain => "",
            LoopShape::InBatches => ", batches of 16",
            LoopShape::Depth4 => ", depth 4",
            LoopShape::Depth1 => ", depth 1",
            LoopShape::Libaio => ", libaio",
            LoopShape::LibaioDepth1 => ", libaio, depth 1",
            LoopShape::Psync => ", psync",
            LoopShape::TwoWorkers => ", two workers",
        }
    }
}

/// A program and the shape of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct ComparedProgram {
    pub(super) binary: ComparedBinary,
    pub(super) shape: LoopShape,
}

impl ComparedProgram {
    /// iosonde at depth 64, without batch options.
    pub(super) const IOSONDE: ComparedProgram =
        ComparedProgram::new(ComparedBinary::Iosonde, LoopShape::Plain);

    /// The bare loop at depth 64, without batch options.
    pub(super) const BARE_LOOP: ComparedProgram =
        ComparedProgram::new(ComparedBinary::BareLoop, LoopShape::Plain);

    /// A program with a job.
    pub(super) const fn new(binary: ComparedBinary, shape: LoopShape) -> ComparedProgram {
        ComparedProgram { binary, shape }
    }

    /// Name of the program in tables.
    pub(super) fn name(self) -> String {
        format!("{}{}", self.binary.name(), self.shape.suffix())
    }
}

/// A run and the flags of the kernel that the program reports.
#[derive(Debug)]
pub(super) struct ProgramRun {
    pub(super) sample: RunSample,
    /// Empty for programs other than the bare loop.
    pub(super) flags: Vec<String>,
}

/// Figures of one run.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct RunSample {
    pub(super) iops: f64,
    /// CPU time of the job for each I/O, as the program reports it.
    pub(super) per_io: CpuTime,
    /// CPU time of the whole process for each I/O, as the kernel reports it.
    pub(super) process_per_io: CpuTime,
}

/// Paths of the programs and length of a run.
#[derive(Debug)]
pub(super) struct ProgramRuns {
    pub(super) fio: PathBuf,
    pub(super) iosonde: PathBuf,
    /// The earlier build of iosonde.
    pub(super) before: Option<PathBuf>,
    pub(super) length: Duration,
}

impl ProgramRuns {
    /// Runs a program once on a target.
    pub(super) fn run(&self, program: ComparedProgram, target: &BenchTarget) -> Result<ProgramRun> {
        let report = tempfile::NamedTempFile::new().context("a file for the report")?;
        let shape = program.shape;
        if program.binary == ComparedBinary::BareLoop {
            return self.run_bare(shape, target);
        }
        let mut command = self.fio_command(program.binary)?;
        command.args(self.job(shape, target, report.path()));
        let (_, used) = run_alone(&mut command)?;
        let text = std::fs::read_to_string(report.path()).context("reading the report")?;
        let sample =
            read_report(&text, used).with_context(|| format!("the report of {command:?}"))?;
        let flags = Vec::new();
        Ok(ProgramRun { sample, flags })
    }

    /// The command of a program that takes fio's options.
    pub(super) fn fio_command(&self, binary: ComparedBinary) -> Result<Command> {
        match binary {
            ComparedBinary::Fio => Ok(Command::new(&self.fio)),
            ComparedBinary::Iosonde => Ok(fio_of(&self.iosonde)),
            ComparedBinary::IosondeBefore => {
                let before = self.before.as_deref();
                let mut command = fio_of(before.context("there is no earlier build")?);
                // The features of the ring in this variable are measured against the default.
                command.env_remove("IOSONDE_RING_OPTIONS");
                Ok(command)
            }
            ComparedBinary::BareLoop => bail!("the bare loop takes no options of fio"),
        }
    }

    /// Options of the job, which fio and iosonde both accept.
    fn job(&self, shape: LoopShape, target: &BenchTarget, report: &Path) -> Vec<String> {
        let mut words = vec![
            "--name=bench".to_owned(),
            "--rw=randread".to_owned(),
            "--bs=4k".to_owned(),
            format!("--iodepth={}", shape.depth()),
            format!("--size={}", target.size_bytes),
            "--time_based".to_owned(),
            format!("--runtime={}ms", self.length.as_millis()),
            "--output-format=json".to_owned(),
            format!("--output={}", report.display()),
            "--eta=never".to_owned(),
        ];
        match &target.engine {
            BenchEngine::Null => words.push("--ioengine=null".to_owned()),
            BenchEngine::IoUring(path) => words.extend([
                format!("--ioengine={}", shape.engine()),
                "--direct=1".to_owned(),
                format!("--filename={}", path.display()),
            ]),
        }
        words.extend(shape.extra_words());
        words
    }

    fn run_bare(&self, shape: LoopShape, target: &BenchTarget) -> Result<ProgramRun> {
        let BenchEngine::IoUring(path) = &target.engine else {
            bail!("the bare loop needs a file")
        };
        let this = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(this);
        match shape.engine() {
            "io_uring" => command.arg("bare-loop"),
            engine => command.args(["bare-calls", "--engine", engine]),
        };
        command.arg("--file").arg(path);
        command.arg(format!("--size-bytes={}", target.size_bytes));
        command.arg(format!("--milliseconds={}", self.length.as_millis()));
        command.arg(format!("--depth={}", shape.depth()));
        if shape == LoopShape::InBatches {
            command.arg(format!("--batch={BATCH}"));
        }
        if shape.workers() > 1 {
            command.arg(format!("--threads={}", shape.workers()));
        }
        let (output, used) = run_alone(&mut command)?;
        let outcome: bare_loop::BareLoopResult =
            serde_json::from_str(&output).context("the bare loop's outcome")?;
        ensure!(outcome.ios > 0, "the bare loop did no I/O");
        let ios = outcome.ios as f64;
        Ok(ProgramRun {
            sample: RunSample {
                iops: ios / (outcome.elapsed_ns as f64 / 1e9),
                per_io: outcome.cpu.per(ios),
                process_per_io: used.per(ios),
            },
            flags: outcome.flags,
        })
    }
}

/// The command `fio` of a build of iosonde. The cost of storing results is not measured.
pub(super) fn fio_of(iosonde: &Path) -> Command {
    let mut command = Command::new(iosonde);
    command.env("IOSONDE_NO_SAVE", "1").arg("fio");
    command
}

/// Runs a command and returns its output and the CPU time of its process. No other child may be
/// waited for meanwhile, so that RUSAGE_CHILDREN grows by this process only.
pub(super) fn run_alone(command: &mut Command) -> Result<(String, CpuTime)> {
    let before = CpuTime::measure(UsageWho::RUSAGE_CHILDREN)?;
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let used = CpuTime::measure(UsageWho::RUSAGE_CHILDREN)? - before;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), used))
}

/// Reads JSON of fio or iosonde about a job of reads.
fn read_report(text: &str, used: CpuTime) -> Result<RunSample> {
    read_report_of(text, "read", used)
}

/// Reads JSON of fio or iosonde about a job in one direction: `read`, `write` or `trim`. fio prints
/// messages before the JSON.
pub(super) fn read_report_of(text: &str, direction: &str, used: CpuTime) -> Result<RunSample> {
    let start = text.find("{\n").context("there is no JSON")?;
    let report: Value = serde_json::from_str(&text[start..])?;
    let job = &report["jobs"][0];
    let number = |value: &Value, name: &str| {
        value[name]
            .as_f64()
            .with_context(|| format!("there is no number {name}"))
    };
    ensure!(number(job, "error")? == 0.0, "the job failed");
    let ios = number(&job[direction], "total_ios")?;
    ensure!(ios > 0.0, "the job did no I/O");
    // usr_cpu and sys_cpu are percentages of job_runtime, which is in milliseconds.
    let unit_us = number(job, "job_runtime")? * 1e3 / 100.0;
    let cpu = CpuTime {
        user_us: number(job, "usr_cpu")? * unit_us,
        system_us: number(job, "sys_cpu")? * unit_us,
    };
    Ok(RunSample {
        iops: number(&job[direction], "iops")?,
        per_io: cpu.per(ios),
        process_per_io: used.per(ios),
    })
}

#[cfg(test)]
mod tests {
    use super::super::bench_target::BenchTargetKind;
    use super::*;

    const REPORT: &str = r#"note: something fio had to say
{
  "jobs": [{ "error": 0, "job_runtime": 2000, "usr_cpu": 10.0, "sys_cpu": 40.0,
             "read": { "total_ios": 100000, "iops": 50000.5 } }]
}"#;

    #[test]
    fn report_gives_cpu_time_per_io() {
        let sample = read_report(
            REPORT,
            CpuTime {
                user_us: 300_000.0,
                system_us: 900_000.0,
            },
        )
        .unwrap();
        assert_eq!(sample.iops, 50000.5);
        assert!((sample.per_io.user_us - 2.0).abs() < 1e-9);
        assert!((sample.per_io.system_us - 8.0).abs() < 1e-9);
        assert!((sample.process_per_io.user_us - 3.0).abs() < 1e-9);
    }

    #[test]
    fn job_words_name_engine_depth_and_workers() {
        let runs = ProgramRuns {
            fio: "fio".into(),
            iosonde: "iosonde".into(),
            before: None,
            length: Duration::from_secs(1),
        };
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let target = BenchTarget::make(BenchTargetKind::Sparse, directory.path(), 1 << 20).unwrap();
        let Ok(target) = target else { return };
        for (shape, expected) in [
            (LoopShape::Plain, ["--ioengine=io_uring", "--iodepth=64"]),
            (LoopShape::Libaio, ["--ioengine=libaio", "--iodepth=64"]),
            (
                LoopShape::LibaioDepth1,
                ["--ioengine=libaio", "--iodepth=1"],
            ),
            (LoopShape::Psync, ["--ioengine=psync", "--iodepth=1"]),
            (LoopShape::TwoWorkers, ["--numjobs=2", "--group_reporting"]),
            (
                LoopShape::InBatches,
                ["--iodepth_batch_submit=16", "--fixedbufs"],
            ),
        ] {
            let words = runs.job(shape, &target, Path::new("report"));
            for word in expected {
                assert!(
                    words.iter().any(|each| each == word),
                    "{shape:?}: {words:?}"
                );
            }
        }
        assert!(runs.fio_command(ComparedBinary::IosondeBefore).is_err());
    }

    #[test]
    fn failed_or_idle_job_gives_no_sample() {
        for (good, bad) in [
            ("\"error\": 0", "\"error\": 5"),
            ("100000", "0"),
            ("usr_cpu", "cpu"),
        ] {
            let report = REPORT.replace(good, bad);
            assert!(read_report(&report, CpuTime::default()).is_err(), "{bad}");
        }
    }

    #[test]
    fn failed_command_reports_stderr_and_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo broken >&2; exit 3"]);
        let error = run_alone(&mut command).unwrap_err().to_string();
        assert!(error.contains("broken") && error.contains('3'), "{error}");
    }
}
