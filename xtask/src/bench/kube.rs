//! Times on a cluster: `iosonde fio` beside `kubectl run`, and `iosonde k8s fio` beside kubestr.
//!
//! The cluster takes most of the time: it provisions a volume and starts a pod. Its time
//! varies more than the programs differ. They run in turn, and are compared round by round.

mod kube_cluster;
mod kube_runs;

use super::ratio::IntervalEstimate;
use super::report::word;
use anyhow::{Context, Result, bail, ensure};
use kube_cluster::{KubeBenchCluster, Namespace};
use kube_runs::{BenchJobFile, KubeRuns};
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Most seconds from Running of `kubectl run` to the first I/O of iosonde.
const MOST_UNTIL_FIRST_IO_S: f64 = 1.0;
/// The loose bar of a single round on a busy machine, which detects gross regressions.
const MOST_OF_SMOKE_S: f64 = 10.0;

/// Options of `cargo xtask bench kube`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Rounds of each pair of programs
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Length of the job that kubestr runs too, in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Directory of a running cluster of tests/kube [default: start and remove the built one]
    #[arg(long, conflicts_with = "kubeconfig")]
    kube: Option<PathBuf>,
    /// Kubeconfig of another cluster
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The storage class
    #[arg(long, default_value = "loop-ext4")]
    class: String,
    /// Size of each claim
    #[arg(long, default_value = "300Mi")]
    size: String,
    /// Image of the pods of iosonde and of `kubectl run`: any with `sh`
    #[arg(long, default_value = "busybox")]
    image: String,
    /// A built iosonde [default: build it]
    #[arg(long)]
    iosonde: Option<PathBuf>,
    /// kubectl [default: the tests' cluster's own, else kubectl]
    #[arg(long)]
    kubectl: Option<PathBuf>,
    /// kubestr [default: the one in PATH; where there is none, its half is left out]
    #[arg(long)]
    kubestr: Option<PathBuf>,
    /// Image of kubestr's pod: one with fio [default: the tests' cluster's, else kubestr's own]
    #[arg(long)]
    kubestr_image: Option<String>,
    /// One round with generous bars: shows that the bench works
    #[arg(long)]
    smoke: bool,
    /// Also write everything here, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A comparison and its result.
#[derive(Debug, Serialize)]
struct KubeComparison {
    what: String,
    /// Reason why the comparison was skipped.
    left_out: Option<String>,
    peer: &'static str,
    ours: &'static str,
    peer_s: Vec<f64>,
    ours_s: Vec<f64>,
    verdict: Option<TimeVerdict>,
}

/// Difference in time, iosonde minus peer, with its bar.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct TimeVerdict {
    difference_s: IntervalEstimate,
    most_s: f64,
    met: bool,
}

impl TimeVerdict {
    /// Judges by the mean, as the benchmark beside fio does.
    fn judge(difference_s: IntervalEstimate, most_s: f64) -> TimeVerdict {
        TimeVerdict {
            difference_s,
            most_s,
            met: difference_s.value <= most_s,
        }
    }

    /// Whether the interval contains the bar.
    fn is_in_doubt(&self) -> bool {
        let interval = self.difference_s.interval;
        interval.is_some_and(|(low, high)| low <= self.most_s && self.most_s < high)
    }
}

impl KubeComparison {
    fn left_out(what: String, pair: Pair, reason: String) -> KubeComparison {
        KubeComparison {
            what,
            left_out: Some(reason),
            peer: pair.peer,
            ours: pair.ours,
            peer_s: Vec::new(),
            ours_s: Vec::new(),
            verdict: None,
        }
    }

    fn compare(what: String, pair: Pair, [peer_s, ours_s]: [Vec<f64>; 2]) -> KubeComparison {
        let difference = IntervalEstimate::difference(&ours_s, &peer_s);
        KubeComparison {
            left_out: None,
            verdict: Some(TimeVerdict::judge(difference, pair.most_s)),
            peer_s,
            ours_s,
            ..KubeComparison::left_out(what, pair, String::new())
        }
    }

    fn is_met(&self) -> bool {
        self.verdict.is_none_or(|verdict| verdict.met)
    }

    fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.what);
        if let Some(reason) = &self.left_out {
            text.push_str(&format!("  left out: {reason}\n"));
        }
        let Some(verdict) = self.verdict else {
            return text;
        };
        for (name, samples) in [(self.peer, &self.peer_s), (self.ours, &self.ours_s)] {
            let mean = seconds(IntervalEstimate::mean(samples));
            let each: Vec<String> = samples.iter().map(|took| format!("{took:.2}")).collect();
            text.push_str(&format!("  {name:<16} {mean:<27} {}\n", each.join(" ")));
        }
        let doubt = match verdict.is_in_doubt() {
            true => "; the interval holds the bar",
            false => "",
        };
        text + &format!(
            "  {:<6} {} - {} = {}, to be at most {} s{doubt}\n",
            word(verdict.met),
            self.ours,
            self.peer,
            seconds(verdict.difference_s),
            verdict.most_s,
        )
    }
}

fn seconds(estimate: IntervalEstimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.2} s [{low:.2}, {high:.2}]", estimate.value),
        None => format!("{:.2} s", estimate.value),
    }
}

/// Two programs that run in turn, and the largest allowed difference.
#[derive(Debug, Clone, Copy)]
struct Pair {
    peer: &'static str,
    ours: &'static str,
    most_s: f64,
}

impl Pair {
    /// iosonde beside `kubectl run`.
    fn beside_kubectl(smoke: bool) -> Pair {
        Pair {
            peer: "kubectl run",
            ours: "iosonde fio",
            most_s: if smoke {
                MOST_OF_SMOKE_S
            } else {
                MOST_UNTIL_FIRST_IO_S
            },
        }
    }

    /// iosonde beside kubestr. iosonde must be the faster one.
    fn beside_kubestr(smoke: bool) -> Pair {
        Pair {
            peer: "kubestr fio",
            ours: "iosonde k8s fio",
            most_s: if smoke { MOST_OF_SMOKE_S } else { 0.0 },
        }
    }
}

/// Runs both programs in turn and returns their times in seconds, round by round.
fn in_turn(
    rounds: usize,
    interrupted: &AtomicBool,
    peer: impl Fn() -> Result<Duration>,
    ours: impl Fn() -> Result<Duration>,
) -> Result<[Vec<f64>; 2]> {
    let mut samples = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        // The order alternates, so that work left to the cluster delays both programs equally.
        let mut order = [0, 1];
        order.rotate_left(round % 2);
        for who in order {
            let took = if who == 0 { peer() } else { ours() };
            // An interrupted run gives no sample.
            if interrupted.load(Relaxed) {
                bail!("interrupted");
            }
            samples[who].push(took?.as_secs_f64());
        }
    }
    Ok(samples)
}

/// Runs the benchmark and returns whether all bars were met.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let (rounds, length_s) = match arguments.smoke {
        true => (1, 1),
        false => (arguments.runs, arguments.seconds),
    };
    ensure!(rounds > 0 && length_s > 0, "there is nothing to run");
    let interrupted = super::interruptions()?;
    let iosonde = match &arguments.iosonde {
        Some(path) => path.clone(),
        None => super::built_iosonde()?,
    };
    let cluster = match (&arguments.kube, &arguments.kubeconfig) {
        (Some(directory), _) => KubeBenchCluster::running(directory)?,
        (None, Some(kubeconfig)) => KubeBenchCluster::from_kubeconfig(kubeconfig),
        (None, None) => KubeBenchCluster::started(&super::build_directory()?)?,
    }
    .with_kubectl(arguments.kubectl.as_deref());
    if interrupted.load(Relaxed) {
        bail!("interrupted");
    }
    let namespace = Namespace::new(&cluster)?;
    println!(
        "iosonde beside kubectl and kubestr on {}: class {}, claims of {}; \
         {rounds} rounds, in turn; 95 % intervals",
        cluster.description, arguments.class, arguments.size
    );
    let runs = KubeRuns {
        namespace: &namespace,
        class: arguments.class.clone(),
        size: arguments.size.clone(),
        image: arguments.image.clone(),
        iosonde,
    };
    let what =
        "from command to first I/O, beside `kubectl run` of the same image to Running".to_owned();
    let samples = in_turn(
        rounds,
        &interrupted,
        || runs.until_running(),
        || runs.until_first_io(),
    )?;
    let start = KubeComparison::compare(what, Pair::beside_kubectl(arguments.smoke), samples);
    print!("{}", start.text());
    let whole = beside_kubestr(arguments, &cluster, &runs, rounds, length_s, &interrupted)?;
    print!("{}", whole.text());
    let findings = [start, whole];
    super::write_json(arguments.json.as_deref(), &findings)?;
    Ok(findings.iter().all(KubeComparison::is_met))
}

/// Compares the total time of the same job, if kubestr is installed.
fn beside_kubestr(
    arguments: &Arguments,
    cluster: &KubeBenchCluster,
    runs: &KubeRuns<'_>,
    rounds: usize,
    length_s: u32,
    interrupted: &AtomicBool,
) -> Result<KubeComparison> {
    let what = format!("all of a job of {length_s} s, beside kubestr");
    let pair = Pair::beside_kubestr(arguments.smoke);
    let kubestr = arguments.kubestr.as_deref();
    let Some(kubestr) = present(kubestr, Path::new("kubestr"))? else {
        let reason = "kubestr is not installed: name one with --kubestr";
        return Ok(KubeComparison::left_out(what, pair, reason.to_owned()));
    };
    let job = BenchJobFile::new(length_s)?;
    let image = arguments.kubestr_image.as_deref().or(cluster.fio_image);
    let samples = in_turn(
        rounds,
        interrupted,
        || runs.kubestr(kubestr, image, &job),
        || runs.as_kubestr(&job),
    )?;
    Ok(KubeComparison::compare(what, pair, samples))
}

/// The named program, which must exist, or else the usual one if it exists.
fn present<'a>(named: Option<&'a Path>, usual: &'a Path) -> Result<Option<&'a Path>> {
    let program = named.unwrap_or(usual);
    let started = std::process::Command::new(program).arg("--help").output();
    match started {
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => Ok(None),
        started => started
            .map(|_| Some(program))
            .with_context(|| format!("starting {}", program.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(peer_s: &[f64], ours_s: &[f64]) -> KubeComparison {
        let samples = [peer_s.to_vec(), ours_s.to_vec()];
        KubeComparison::compare("start".to_owned(), Pair::beside_kubectl(false), samples)
    }

    #[test]
    fn start_delay_is_judged_round_by_round() {
        // The round of 9 s is slow for both programs.
        let met = finding(&[2.0, 9.0, 3.0], &[2.9, 9.9, 3.9]);
        assert!(met.is_met());
        let text = met.text();
        assert!(
            text.contains(
                "met    iosonde fio - kubectl run = 0.90 s [0.90, 0.90], to be at most 1 s\n"
            ),
            "{text}"
        );
        let missed = finding(&[2.0, 2.0, 2.0], &[2.9, 3.1, 3.2]);
        assert!(!missed.is_met());
        let text = missed.text();
        assert!(
            text.contains("MISSED iosonde fio - kubectl run = 1.07 s"),
            "{text}"
        );
        assert!(
            text.contains("at most 1 s; the interval holds the bar"),
            "{text}"
        );
        assert!(text.contains("2.90 3.10 3.20"), "{text}");
    }

    #[test]
    fn single_round_has_no_interval_and_no_doubt() {
        let text = finding(&[2.0], &[2.5]).text();
        assert!(text.contains("= 0.50 s, to be at most 1 s\n"), "{text}");
    }

    #[test]
    fn missing_kubestr_skips_its_comparison_with_reason() {
        let (absent, there) = (Path::new("/nonexistent/kubestr"), Path::new("true"));
        assert_eq!(present(None, absent).unwrap(), None);
        assert_eq!(present(None, there).unwrap(), Some(there));
        // A missing program that was named is an error.
        assert!(present(Some(absent), there).is_err());
        let reason = "it is not installed".to_owned();
        let finding =
            KubeComparison::left_out("all".to_owned(), Pair::beside_kubestr(false), reason);
        assert!(finding.is_met());
        let text = finding.text();
        assert!(
            text.starts_with("\nall\n  left out: it is not installed"),
            "{text}"
        );
        assert!(!text.contains("met") && !text.contains(" s ["), "{text}");
    }

    #[test]
    fn programs_alternate_and_first_program_changes() {
        let order = std::cell::RefCell::new(String::new());
        let takes = |who: char, seconds| {
            let order = &order;
            move || {
                order.borrow_mut().push(who);
                Ok(Duration::from_secs(seconds))
            }
        };
        let interrupted = AtomicBool::new(false);
        let samples = in_turn(3, &interrupted, takes('p', 2), takes('o', 1)).unwrap();
        assert_eq!(samples, [vec![2.0; 3], vec![1.0; 3]]);
        assert_eq!(*order.borrow(), "pooppo".to_owned());
        interrupted.store(true, Relaxed);
        let error = in_turn(3, &interrupted, takes('p', 2), takes('o', 1)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
    }
}
