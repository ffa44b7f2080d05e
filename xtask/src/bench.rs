//! Compares iosonde with the installed fio, on targets where the cost of the program dominates.
//!
//! The speed of a shared machine drifts by half within minutes. The programs therefore run in turn,
//! ratios are computed run by run, and the cost of an I/O is counted in CPU time.

mod aligned_block;
pub(crate) mod bare_calls;
pub(crate) mod bare_loop;
mod bars;
mod bench_target;
pub(crate) mod ceph;
mod cpu;
mod features;
mod free_cpus;
mod kube;
mod many_jobs;
mod program;
mod ratio;
mod readme_table;
mod report;
mod sys;
mod xorshift;

use anyhow::{Context, Result, bail, ensure};
use bars::{Bar, bench_bars, smoke_bars};
use bench_target::{BenchTarget, BenchTargetKind};
use free_cpus::{FreeCpus, allowed_cpus};
use many_jobs::ManyJobsComparison;
use nix::libc;
use program::{ComparedBinary, ComparedProgram, LoopShape, ProgramRuns};
use readme_table::BenchConditions;
use report::{ProgramSeries, TargetComparison};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Options of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subcommand: Option<BenchSubcommand>,
    /// Runs of each program on each target
    #[arg(long, default_value_t = 10)]
    runs: usize,
    /// Length of a run in seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Length of the files in MiB
    #[arg(long, default_value_t = 1024)]
    size_mib: u64,
    /// Only these targets: null, sparse, file, loop, tmpfs
    #[arg(long, value_delimiter = ',', value_parser = BenchTargetKind::named)]
    targets: Vec<BenchTargetKind>,
    /// Where the sparse and the written file go [default: the build directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// A built iosonde [default: build it]
    #[arg(long)]
    iosonde: Option<PathBuf>,
    /// An earlier build of iosonde, which runs in turn with it
    #[arg(long)]
    before: Option<PathBuf>,
    /// fio
    #[arg(long, default_value = "fio")]
    fio: PathBuf,
    /// One short run of each, with generous bars: shows that the bench works
    #[arg(long)]
    smoke: bool,
    /// Also write everything here, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the table of the README from the runs on the target sparse
    #[arg(long, conflicts_with = "smoke")]
    readme: bool,
}

impl Arguments {
    /// Whether a target is measured.
    fn wants(&self, kind: BenchTargetKind) -> bool {
        self.targets.is_empty() || self.targets.contains(&kind)
    }
}

/// Comparisons other than that beside fio.
#[derive(Debug, clap::Subcommand)]
enum BenchSubcommand {
    /// Beside rados bench, on a Ceph cluster
    Ceph(Box<ceph::Arguments>),
    /// Beside kubectl and kubestr, on a Kubernetes cluster
    Kube(Box<kube::Arguments>),
    /// iosonde with single features of the kernel and without them
    Features(Box<features::Arguments>),
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct FioBenchDocument {
    fio_version: String,
    kernel: String,
    /// Processors that the programs may use.
    cpus: usize,
    runs: usize,
    seconds: f64,
    findings: Vec<TargetComparison>,
    /// Start of many jobs, if the target null was measured.
    many_jobs: Option<ManyJobsComparison>,
}

/// Runs the benchmark and returns whether all bars were met.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    match &arguments.subcommand {
        Some(BenchSubcommand::Ceph(arguments)) => return ceph::run(arguments),
        Some(BenchSubcommand::Kube(arguments)) => return kube::run(arguments),
        Some(BenchSubcommand::Features(arguments)) => return features::run(arguments),
        None => {}
    }
    let (rounds, seconds, size_mib) = if arguments.smoke {
        (1, 0.3, 64)
    } else {
        (arguments.runs, arguments.seconds, arguments.size_mib)
    };
    ensure!(
        rounds > 0 && seconds > 0.0 && size_mib > 0,
        "there is nothing to run"
    );
    ensure!(
        !arguments.readme || arguments.wants(BenchTargetKind::Sparse),
        "--readme needs the target sparse"
    );
    let bench = Bench {
        programs: ProgramRuns {
            iosonde: match &arguments.iosonde {
                Some(path) => path.clone(),
                None => built_iosonde()?,
            },
            before: arguments.before.clone(),
            fio: arguments.fio.clone(),
            length: Duration::from_secs_f64(seconds),
        },
        rounds,
        size_bytes: size_mib << 20,
        directory: directory(arguments)?,
        smoke: arguments.smoke,
        interrupted: interruptions()?,
    };
    let mut document = FioBenchDocument {
        fio_version: version(&arguments.fio)?,
        kernel: kernel(),
        cpus: allowed_cpus(),
        runs: rounds,
        seconds,
        findings: Vec::new(),
        many_jobs: None,
    };
    println!(
        "{} on Linux {}: 4 KiB random reads, depth 64 unless named; \
         {rounds} runs of {seconds} s each, in turn; 95 % intervals",
        document.fio_version, document.kernel
    );
    bench.measure(arguments, &mut document)?;
    write_json(arguments.json.as_deref(), &document)?;
    if arguments.readme {
        write_readme(&document)?;
    }
    let mut verdicts = document
        .findings
        .iter()
        .flat_map(|finding| &finding.verdicts);
    Ok(verdicts.all(|verdict| verdict.met))
}

/// Writes the table of the README.
fn write_readme(document: &FioBenchDocument) -> Result<()> {
    let sparse = BenchTargetKind::Sparse.name();
    let comparison = document
        .findings
        .iter()
        .find(|finding| finding.target == sparse)
        .context("the target sparse was not measured")?;
    let conditions = BenchConditions {
        fio_version: &document.fio_version,
        kernel: &document.kernel,
        cpus: document.cpus,
        runs: document.runs,
        seconds: document.seconds,
    };
    let path = crate::repository::repository_root().join("README.md");
    readme_table::write(&path, comparison, conditions)
}

/// Writes a document as JSON to a path, if there is one.
fn write_json(path: Option<&Path>, document: &impl Serialize) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(document)?;
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

struct Bench {
    programs: ProgramRuns,
    rounds: usize,
    size_bytes: u64,
    directory: PathBuf,
    smoke: bool,
    interrupted: Arc<AtomicBool>,
}

impl Bench {
    /// Measures the wanted targets, and prints each result.
    fn measure(&self, arguments: &Arguments, document: &mut FioBenchDocument) -> Result<()> {
        for kind in BenchTargetKind::ALL {
            if arguments.wants(kind) {
                let finding = self.target(kind)?;
                print!("{}", finding.text());
                document.findings.push(finding);
            }
        }
        if arguments.wants(BenchTargetKind::Null) {
            let many_jobs =
                ManyJobsComparison::measure(&self.programs, self.rounds, &self.interrupted)?;
            print!("{}", many_jobs.text());
            document.many_jobs = Some(many_jobs);
        }
        Ok(())
    }

    fn target(&self, kind: BenchTargetKind) -> Result<TargetComparison> {
        let target = match BenchTarget::make(kind, &self.directory, self.size_bytes)? {
            Ok(target) => target,
            Err(missing) => return Ok(TargetComparison::skipped(kind, missing.0)),
        };
        let mut bars = if self.smoke {
            smoke_bars(kind)
        } else {
            bench_bars(kind)
        };
        let mut not_judged = None;
        if bars.iter().any(Bar::needs_two_cpus) {
            not_judged = FreeCpus::measure()?.refusal_of_two_workers();
        }
        if not_judged.is_some() {
            bars.retain(|bar| !bar.needs_two_cpus());
        }
        let finding = TargetComparison {
            description: target.description.clone(),
            skipped: None,
            series: self.series(kind, &target)?,
            not_judged,
            ..TargetComparison::skipped(kind, String::new())
        };
        Ok(finding.judged(&bars))
    }

    fn series(&self, kind: BenchTargetKind, target: &BenchTarget) -> Result<Vec<ProgramSeries>> {
        let mut series: Vec<ProgramSeries> = programs(kind, self.programs.before.is_some())
            .into_iter()
            .map(|program| ProgramSeries {
                program,
                flags: Vec::new(),
                samples: Vec::new(),
            })
            .collect();
        for _ in 0..self.rounds {
            for series in &mut series {
                let run = self.programs.run(series.program, target);
                // An interrupted run gives no sample. The return drops the target and its files.
                if self.interrupted.load(Relaxed) {
                    bail!("interrupted");
                }
                let run = run?;
                series.samples.push(run.sample);
                series.flags = run.flags;
            }
        }
        Ok(series)
    }
}

/// Programs that run in turn on a kind of target, also an earlier build if `has_before`.
fn programs(kind: BenchTargetKind, has_before: bool) -> Vec<ComparedProgram> {
    let shapes: &[LoopShape] = match kind {
        BenchTargetKind::Sparse => &LoopShape::ALL,
        BenchTargetKind::Null => &[LoopShape::Plain, LoopShape::TwoWorkers],
        _ => &[LoopShape::Plain],
    };
    let has_bare_loops = kind == BenchTargetKind::Sparse;
    let mut programs = Vec::new();
    for shape in shapes {
        let binaries = [
            (ComparedBinary::Fio, true),
            (ComparedBinary::Iosonde, true),
            (ComparedBinary::IosondeBefore, has_before),
            (ComparedBinary::BareLoop, has_bare_loops),
        ];
        let running = binaries.into_iter().filter(|(_, runs)| *runs);
        programs.extend(running.map(|(binary, _)| ComparedProgram::new(binary, *shape)));
    }
    programs
}

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set.
fn interruptions() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal_hook::flag::register(signal, interrupted.clone()).context("waiting for signals")?;
    }
    Ok(interrupted)
}

/// The build directory: the parent of the profile's directory that holds this program.
pub(crate) fn build_directory() -> Result<PathBuf> {
    let this = std::env::current_exe().context("finding this program")?;
    let directory = this
        .ancestors()
        .nth(2)
        .context("this program is in no build directory")?;
    Ok(directory.to_owned())
}

fn directory(arguments: &Arguments) -> Result<PathBuf> {
    match &arguments.directory {
        Some(directory) => Ok(directory.clone()),
        None => build_directory(),
    }
}

/// Builds iosonde in release mode and returns the path of the program.
fn built_iosonde() -> Result<PathBuf> {
    let target = build_directory()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--quiet",
            "--package",
            "iosonde",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(crate::repository::repository_root())
        .status()
        .context("starting cargo")?;
    ensure!(built.success(), "iosonde could not be built");
    Ok(target.join("release/iosonde"))
}

fn version(fio: &Path) -> Result<String> {
    let output = Command::new(fio)
        .arg("--version")
        .output()
        .with_context(|| format!("starting {}: is fio installed?", fio.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_build_runs_in_turn_with_each_shape() {
        let programs_on = |kind, has_before| programs(kind, has_before).len();
        assert_eq!(programs_on(BenchTargetKind::Written, false), 2);
        assert_eq!(programs_on(BenchTargetKind::Null, false), 2 * 2);
        assert_eq!(programs_on(BenchTargetKind::Null, true), 2 * 3);
        assert_eq!(programs_on(BenchTargetKind::Sparse, false), 8 * 3);
        let all = programs(BenchTargetKind::Sparse, true);
        assert_eq!(all.len(), 8 * 4);
        for shape in LoopShape::ALL {
            let before = ComparedProgram::new(ComparedBinary::IosondeBefore, shape);
            assert!(all.contains(&before), "{shape:?}");
        }
    }
}
