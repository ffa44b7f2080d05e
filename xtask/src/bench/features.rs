//! Compares jobs of iosonde with single features of the kernel and without them.
//!
//! Both sides of a pair are the same build with the same job. `IOSONDE_RING_OPTIONS` or an option
//! of the job switches the feature. Each second pair begins with the other side, so that a drift of
//! the machine favours neither.

mod feature_cases;

use super::bench_target::{BenchEngine, BenchTarget, BenchTargetKind, Missing};
use super::program::{RunSample, fio_of, read_report_of, run_alone};
use super::ratio::IntervalEstimate;
use super::report::interval;
use anyhow::{Context, Result, bail, ensure};
use feature_cases::{FeatureCase, FeatureTarget, feature_cases};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Environment variable that switches features of the ring and of files.
const RING_OPTIONS: &str = "IOSONDE_RING_OPTIONS";

/// Length of the run that shows whether a feature is in force.
const TRIAL: Duration = Duration::from_millis(200);

/// Options of `cargo xtask bench features`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Pairs of runs of each comparison
    #[arg(long, default_value_t = 6)]
    runs: usize,
    /// Length of a run in seconds
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Length of the files in MiB
    #[arg(long, default_value_t = 256)]
    size_mib: u64,
    /// Where the sparse and the written file go [default: the build directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// A file or device for discards and atomic writes, which overwrite it [default: a loop device
    /// over a file in memory, which needs root]
    #[arg(long)]
    overwrite: Option<PathBuf>,
    /// A built iosonde [default: build it]
    #[arg(long)]
    iosonde: Option<PathBuf>,
    /// Only features whose name has this in it, e.g. "NOATIME"
    #[arg(long, default_value = "")]
    only: String,
    /// Also write everything here, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct FeatureDocument {
    kernel: String,
    runs: usize,
    seconds: f64,
    comparisons: Vec<FeatureComparison>,
}

/// Runs of one job with a feature and without it.
#[derive(Debug, Serialize)]
struct FeatureComparison {
    feature: &'static str,
    job: String,
    /// Description of the target.
    target: String,
    /// Reason why the feature was not measured.
    skipped: Option<String>,
    with: Vec<RunSample>,
    without: Vec<RunSample>,
}

impl FeatureComparison {
    /// The ratio of a figure with the feature to the same without it, pair by pair.
    fn ratio(&self, figure: fn(&RunSample) -> f64) -> IntervalEstimate {
        let values = |samples: &[RunSample]| samples.iter().map(figure).collect::<Vec<f64>>();
        IntervalEstimate::ratio(&values(&self.with), &values(&self.without))
    }

    /// One line of the table.
    fn text(&self) -> String {
        let start = format!("  {:<22} {:<25}", self.feature, self.job);
        if let Some(reason) = &self.skipped {
            return format!("{start} not measured: {reason}\n");
        }
        let [rate, job, process] = FIGURES.map(|figure| interval(self.ratio(figure)));
        format!("{start} {rate:<23} {job:<23} {process}\n")
    }
}

/// The compared figures: rate, CPU time of the job and of the process for each I/O.
const FIGURES: [fn(&RunSample) -> f64; 3] = [
    |sample| sample.iops,
    |sample| sample.per_io.user_us + sample.per_io.system_us,
    |sample| sample.process_per_io.user_us + sample.process_per_io.system_us,
];

/// Compares all features and prints the ratios. There are no bars: returns true.
pub(super) fn run(arguments: &Arguments) -> Result<bool> {
    ensure!(
        arguments.runs > 0 && arguments.seconds > 0.0 && arguments.size_mib > 0,
        "there is nothing to run"
    );
    let has_name = |case: &FeatureCase| case.feature.contains(&arguments.only);
    let cases: Vec<FeatureCase> = feature_cases().into_iter().filter(has_name).collect();
    ensure!(!cases.is_empty(), "no feature has this name");
    let bench = FeatureBench {
        iosonde: match &arguments.iosonde {
            Some(path) => path.clone(),
            None => super::built_iosonde()?,
        },
        directory: match &arguments.directory {
            Some(directory) => directory.clone(),
            None => super::build_directory()?,
        },
        overwrite: arguments.overwrite.clone(),
        size_bytes: arguments.size_mib << 20,
        pairs: arguments.runs,
        length: Duration::from_secs_f64(arguments.seconds),
    };
    let mut document = FeatureDocument {
        kernel: super::kernel(),
        runs: arguments.runs,
        seconds: arguments.seconds,
        comparisons: Vec::new(),
    };
    println!(
        "iosonde on Linux {}: ratios with a feature to those without it; {} pairs of {} s in turn; \
         95 % intervals",
        document.kernel, document.runs, document.seconds
    );
    bench.measure(&cases, &mut document)?;
    super::write_json(arguments.json.as_deref(), &document)?;
    Ok(true)
}

struct FeatureBench {
    iosonde: PathBuf,
    directory: PathBuf,
    overwrite: Option<PathBuf>,
    size_bytes: u64,
    pairs: usize,
    length: Duration,
}

impl FeatureBench {
    /// Measures the cases target by target, and prints each result.
    fn measure(&self, cases: &[FeatureCase], document: &mut FeatureDocument) -> Result<()> {
        let interrupted = super::interruptions()?;
        for kind in FeatureTarget::ALL {
            let of_target = || cases.iter().filter(|case| case.target == kind);
            if of_target().next().is_none() {
                continue;
            }
            let target = self.make_target(kind)?;
            println!("\n{}", heading(&target));
            for case in of_target() {
                let comparison = match &target {
                    Ok(target) => self.compare(case, target, &interrupted)?,
                    Err(missing) => skipped(case, String::new(), missing.0.clone()),
                };
                print!("{}", comparison.text());
                document.comparisons.push(comparison);
            }
        }
        Ok(())
    }

    fn make_target(&self, kind: FeatureTarget) -> Result<Result<BenchTarget, Missing>> {
        let (directory, size_bytes) = (&self.directory, self.size_bytes);
        match (kind, &self.overwrite) {
            (FeatureTarget::Sparse, _) => {
                BenchTarget::make(BenchTargetKind::Sparse, directory, size_bytes)
            }
            (FeatureTarget::Buffered, _) => {
                BenchTarget::make(BenchTargetKind::Written, directory, size_bytes)
            }
            (FeatureTarget::Overwritten, Some(path)) => {
                Ok(Ok(BenchTarget::existing(path, size_bytes)))
            }
            (FeatureTarget::Overwritten, None) => Ok(BenchTarget::writable_loop(size_bytes)
                .unwrap_or_else(|error| Err(Missing(format!("{error:#}"))))),
        }
    }

    /// Runs a job with its feature and without it, in turn, if the feature is in force.
    fn compare(
        &self,
        case: &FeatureCase,
        target: &BenchTarget,
        interrupted: &AtomicBool,
    ) -> Result<FeatureComparison> {
        let description = target.description.clone();
        let refusal = match self.read_flags(case, target) {
            Ok(named) => missing_text(&case.missing_flags(&named)),
            // The second line of an error of iosonde is advice.
            Err(error) => format!("{error:#}").lines().next().map(str::to_owned),
        };
        if let Some(reason) = refusal {
            return Ok(skipped(case, description, reason));
        }
        let mut sides = [Vec::new(), Vec::new()];
        for pair in 0..self.pairs {
            let first = pair % 2 == 0;
            for has_feature in [first, !first] {
                let sample = self.run_side(case, has_feature, target);
                if interrupted.load(Relaxed) {
                    bail!("interrupted");
                }
                sides[usize::from(!has_feature)].push(sample?);
            }
        }
        let [with, without] = sides;
        Ok(FeatureComparison {
            skipped: None,
            with,
            without,
            ..skipped(case, description, String::new())
        })
    }

    /// Runs a job once.
    fn run_side(
        &self,
        case: &FeatureCase,
        has_feature: bool,
        target: &BenchTarget,
    ) -> Result<RunSample> {
        let report = tempfile::NamedTempFile::new().context("a file for the report")?;
        let mut command = fio_of(&self.iosonde);
        command
            .env(RING_OPTIONS, case.side(has_feature).ring_options)
            .args(case.job_words(has_feature))
            .args(run_words(target, self.length, report.path())?);
        let (_, used) = run_alone(&mut command)?;
        let text = std::fs::read_to_string(report.path()).context("reading the report")?;
        read_report_of(&text, case.direction, used)
            .with_context(|| format!("the report of {command:?}"))
    }

    /// Runs a job with its feature for a moment, and returns the flags that its result names. The
    /// report of fio has none, so the result goes through a history of its own.
    fn read_flags(&self, case: &FeatureCase, target: &BenchTarget) -> Result<Vec<String>> {
        let history = tempfile::tempdir().context("a directory for the result")?;
        let with_history = || {
            let mut command = Command::new(&self.iosonde);
            command
                .env("XDG_DATA_HOME", history.path())
                .env_remove("IOSONDE_STORE")
                .env_remove("IOSONDE_NO_SAVE");
            command
        };
        let report = history.path().join("report");
        let mut command = with_history();
        command
            .arg("fio")
            .env(RING_OPTIONS, case.with.ring_options)
            .args(case.job_words(true))
            .args(run_words(target, TRIAL, &report)?);
        run_alone(&mut command)?;
        let mut export = with_history();
        export.args(["export", "latest", "--format", "json"]);
        parse_flags(&run_alone(&mut export)?.0)
    }
}

/// Options of the target, the length and the report of a job.
fn run_words(target: &BenchTarget, length: Duration, report: &Path) -> Result<Vec<String>> {
    let BenchEngine::IoUring(path) = &target.engine else {
        bail!("a job on a file needs a file")
    };
    Ok(vec![
        format!("--filename={}", path.display()),
        format!("--size={}", target.size_bytes),
        "--time_based".to_owned(),
        format!("--runtime={}ms", length.as_millis()),
        "--output-format=json".to_owned(),
        format!("--output={}", report.display()),
        "--eta=never".to_owned(),
    ])
}

/// Reads the flags of the first worker of an exported result.
fn parse_flags(text: &str) -> Result<Vec<String>> {
    let result: Value = serde_json::from_str(text).context("the exported result")?;
    let backend = result.pointer("/workers/0/backend");
    let backend = backend.context("the exported result names no engine")?;
    let flags = backend["flags"].as_array().into_iter().flatten();
    Ok(flags.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The reason why a feature without these flags is not measured. `None` if no flag is missing.
fn missing_text(flags: &[&str]) -> Option<String> {
    (!flags.is_empty()).then(|| format!("the result does not name {}", flags.join(", ")))
}

fn skipped(case: &FeatureCase, target: String, reason: String) -> FeatureComparison {
    FeatureComparison {
        feature: case.feature,
        job: case.job_name(),
        target,
        skipped: Some(reason),
        with: Vec::new(),
        without: Vec::new(),
    }
}

/// The target, and the headings of the table.
fn heading(target: &Result<BenchTarget, Missing>) -> String {
    let Ok(target) = target else {
        return "no target".to_owned();
    };
    format!(
        "{}\n  {:<22} {:<25} {:<23} {:<23} CPU per I/O, process",
        target.description, "feature", "job", "IOPS", "CPU per I/O, job"
    )
}

#[cfg(test)]
mod tests {
    use super::super::cpu::CpuTime;
    use super::*;

    fn sample(iops: f64) -> RunSample {
        let per_io = CpuTime {
            user_us: 0.25,
            system_us: 1e6 / iops,
        };
        RunSample {
            iops,
            per_io,
            process_per_io: per_io,
        }
    }

    #[test]
    fn feature_line_has_the_ratios_of_rate_and_cpu_time() {
        let case = feature_cases()[0];
        let comparison = FeatureComparison {
            skipped: None,
            with: vec![sample(2e6), sample(1e6)],
            without: vec![sample(1e6), sample(0.5e6)],
            ..skipped(&case, String::new(), String::new())
        };
        let text = comparison.text();
        assert!(
            text.contains("NO_SQARRAY             randread 4k, depth 64"),
            "{text}"
        );
        assert!(text.contains(" 2.000 [2.000, 2.000] "), "{text}");
        // (0.25 + 0.5) / (0.25 + 1) and (0.25 + 1) / (0.25 + 2).
        assert!(text.contains(" 0.577 ["), "{text}");
    }

    #[test]
    fn feature_that_is_not_in_force_is_reported_with_the_reason() {
        let case = feature_cases()[0];
        let reason = missing_text(&case.missing_flags(&["tsc".to_owned()])).unwrap();
        let text = skipped(&case, String::new(), reason).text();
        assert!(
            text.contains("not measured: the result does not name no_sqarray\n"),
            "{text}"
        );
        assert_eq!(missing_text(&[]), None);
    }

    #[test]
    fn flags_are_read_from_the_exported_result() {
        let text = r#"{ "workers": [{ "backend": { "flags": ["noatime", "tsc"] } }] }"#;
        assert_eq!(parse_flags(text).unwrap(), ["noatime", "tsc"]);
        let without = r#"{ "workers": [{ "backend": {} }] }"#;
        assert_eq!(parse_flags(without).unwrap(), [""; 0]);
        assert!(parse_flags("{}").is_err());
    }

    #[test]
    fn run_words_name_target_and_length() {
        let target = BenchTarget::existing(Path::new("/dev/x"), 4096);
        let words = run_words(&target, TRIAL, Path::new("report")).unwrap();
        for word in ["--filename=/dev/x", "--size=4096", "--runtime=200ms"] {
            assert!(words.iter().any(|each| each == word), "{word}: {words:?}");
        }
    }
}
