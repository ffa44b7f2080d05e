//! iosonde beside the installed fio, on targets that show the programs' own cost.
//!
//! Speed drifts by half within minutes on a shared machine, so the programs take turns, the ratios are taken run by run,
//! and the cost of an I/O is counted in processor time.

pub(crate) mod bare;
mod bars;
pub(crate) mod ceph;
mod cpu;
mod kube;
mod place;
mod program;
mod ratio;
mod report;

use anyhow::{Context, Result, bail, ensure};
use bars::{bars, smoke_bars};
use nix::libc;
use place::{Kind, Place};
use program::{Program, Runs};
use report::{Finding, Series};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What `cargo xtask bench` is asked for.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    beside: Option<Beside>,
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
    #[arg(long, value_delimiter = ',', value_parser = Kind::named)]
    targets: Vec<Kind>,
    /// Where the sparse and the written file go [default: the build directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// A built iosonde [default: build it]
    #[arg(long)]
    iosonde: Option<PathBuf>,
    /// fio
    #[arg(long, default_value = "fio")]
    fio: PathBuf,
    /// One short run of each, with generous bars: shows that the bench works
    #[arg(long)]
    smoke: bool,
    /// Also write everything here, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Programs other than fio.
#[derive(Debug, clap::Subcommand)]
enum Beside {
    /// Beside rados bench, on a Ceph cluster
    Ceph(Box<ceph::Arguments>),
    /// Beside kubectl and kubestr, on a Kubernetes cluster
    Kube(Box<kube::Arguments>),
}

/// Everything, for programs.
#[derive(Debug, Serialize)]
struct Document {
    fio_version: String,
    kernel: String,
    runs: usize,
    seconds: f64,
    findings: Vec<Finding>,
}

/// Runs the bench. Whether all bars were met.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    match &arguments.beside {
        Some(Beside::Ceph(arguments)) => return ceph::run(arguments),
        Some(Beside::Kube(arguments)) => return kube::run(arguments),
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
    let bench = Bench {
        programs: Runs {
            iosonde: match &arguments.iosonde {
                Some(path) => path.clone(),
                None => built_iosonde()?,
            },
            fio: arguments.fio.clone(),
            length: Duration::from_secs_f64(seconds),
        },
        rounds,
        size_bytes: size_mib << 20,
        directory: directory(arguments)?,
        smoke: arguments.smoke,
        interrupted: interruptions()?,
    };
    let mut document = Document {
        fio_version: version(&arguments.fio)?,
        kernel: kernel(),
        runs: rounds,
        seconds,
        findings: Vec::new(),
    };
    println!(
        "{} on Linux {}: 4 KiB random reads, depth 64; {rounds} runs of {seconds} s each, in turn; 95 % intervals",
        document.fio_version, document.kernel
    );
    for kind in Kind::ALL {
        if arguments.targets.is_empty() || arguments.targets.contains(&kind) {
            let finding = bench.target(kind)?;
            print!("{}", finding.text());
            document.findings.push(finding);
        }
    }
    write_json(arguments.json.as_deref(), &document)?;
    let mut verdicts = document
        .findings
        .iter()
        .flat_map(|finding| &finding.verdicts);
    Ok(verdicts.all(|verdict| verdict.met))
}

/// Writes a document where it is wanted.
fn write_json(path: Option<&Path>, document: &impl Serialize) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(document)?;
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

struct Bench {
    programs: Runs,
    rounds: usize,
    size_bytes: u64,
    directory: PathBuf,
    smoke: bool,
    interrupted: Arc<AtomicBool>,
}

impl Bench {
    fn target(&self, kind: Kind) -> Result<Finding> {
        let place = match Place::make(kind, &self.directory, self.size_bytes)? {
            Ok(place) => place,
            Err(missing) => return Ok(Finding::skipped(kind, missing.0)),
        };
        let series = self.series(kind, &place)?;
        let bars = if self.smoke {
            smoke_bars(kind)
        } else {
            bars(kind)
        };
        let finding = Finding {
            description: place.description.clone(),
            skipped: None,
            series,
            ..Finding::skipped(kind, String::new())
        };
        Ok(finding.judged(&bars))
    }

    fn series(&self, kind: Kind, place: &Place) -> Result<Vec<Series>> {
        let mut series: Vec<Series> = programs(kind)
            .iter()
            .map(|program| Series {
                program: *program,
                samples: Vec::new(),
            })
            .collect();
        for _ in 0..self.rounds {
            for series in &mut series {
                let sample = self.programs.run(series.program, place);
                // A program that was interrupted too has nothing to say; what was made is removed on the way out.
                if self.interrupted.load(Relaxed) {
                    bail!("interrupted");
                }
                series.samples.push(sample?);
            }
        }
        Ok(series)
    }
}

/// The programs that take turns on a kind of target.
fn programs(kind: Kind) -> &'static [Program] {
    match kind {
        Kind::Sparse => &[
            Program::Fio,
            Program::Iosonde,
            Program::IosondeInBatches,
            Program::BareLoop,
        ],
        _ => &[Program::Fio, Program::Iosonde],
    }
}

/// Set by Ctrl-C and by a request to end.
fn interruptions() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal_hook::flag::register(signal, interrupted.clone()).context("waiting for signals")?;
    }
    Ok(interrupted)
}

/// The build directory: the parent of the profile's directory, which has this program.
fn build_directory() -> Result<PathBuf> {
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

/// The release build of iosonde, made now.
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
        .current_dir(crate::generate::root())
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
