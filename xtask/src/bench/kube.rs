//! Times on a cluster: `iosonde fio` beside `kubectl run`, and `iosonde k8s fio` beside kubestr, to
//! the result and until nothing is left.
//!
//! The cluster takes most of the time: it provisions a volume and starts a pod. Its time
//! varies more than the programs differ. They run in turn, and are compared round by round.

mod kube_cluster;
mod kube_runs;

use super::ratio::IntervalEstimate;
use super::report::word;
use anyhow::{Context, Result, bail, ensure};
use kube_cluster::{KubeBenchCluster, Namespace};
use kube_runs::{BenchJobFile, JobTimes, KubeRuns};
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Most seconds from Running of `kubectl run` to the first I/O of iosonde.
const MOST_UNTIL_FIRST_IO_S: f64 = 1.0;
/// Largest part of kubestr's time to the result.
const MOST_TO_RESULT: f64 = 0.75;
/// Largest part of kubestr's time until nothing is left in the cluster.
const MOST_TO_NOTHING_LEFT: f64 = 0.9;
/// The loose bar of a single round on a busy machine, which detects gross regressions.
const MOST_OF_SMOKE_S: f64 = 10.0;
/// The same for a ratio.
const MOST_RATIO_OF_SMOKE: f64 = 5.0;

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

/// Largest allowed time of iosonde beside its peer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum TimeBar {
    /// Difference, iosonde minus peer, in seconds.
    DifferenceS(f64),
    /// Ratio, iosonde to peer.
    Ratio(f64),
}

impl TimeBar {
    fn most(self) -> f64 {
        match self {
            TimeBar::DifferenceS(most) | TimeBar::Ratio(most) => most,
        }
    }

    /// Estimates what the bar limits, round by round.
    fn estimate(self, ours_s: &[f64], peer_s: &[f64]) -> IntervalEstimate {
        match self {
            TimeBar::DifferenceS(_) => IntervalEstimate::difference(ours_s, peer_s),
            TimeBar::Ratio(_) => IntervalEstimate::ratio(ours_s, peer_s),
        }
    }
}

/// Difference or ratio of times with its bar.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct TimeVerdict {
    estimate: IntervalEstimate,
    bar: TimeBar,
    met: bool,
}

impl TimeVerdict {
    /// Judges by the mean, as the benchmark beside fio does.
    fn judge(estimate: IntervalEstimate, bar: TimeBar) -> TimeVerdict {
        TimeVerdict {
            estimate,
            bar,
            met: estimate.value <= bar.most(),
        }
    }

    /// Whether the interval contains the bar.
    fn is_in_doubt(&self) -> bool {
        let most = self.bar.most();
        let interval = self.estimate.interval;
        interval.is_some_and(|(low, high)| low <= most && most < high)
    }

    /// Describes the comparison of two programs.
    fn text(&self, ours: &str, peer: &str) -> String {
        match self.bar {
            TimeBar::DifferenceS(most_s) => format!(
                "{ours} - {peer} = {}, to be at most {most_s} s",
                seconds(self.estimate)
            ),
            TimeBar::Ratio(most) => {
                let interval = self.estimate.interval;
                let interval = interval.map_or(String::new(), |(low, high)| {
                    format!(" [{low:.2}, {high:.2}]")
                });
                let ratio = self.estimate.value;
                format!("{ours} / {peer} = {ratio:.2}{interval}, to be at most {most}")
            }
        }
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
        let estimate = pair.bar.estimate(&ours_s, &peer_s);
        KubeComparison {
            left_out: None,
            verdict: Some(TimeVerdict::judge(estimate, pair.bar)),
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
            "  {:<6} {}{doubt}\n",
            word(verdict.met),
            verdict.text(self.ours, self.peer),
        )
    }
}

fn seconds(estimate: IntervalEstimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.2} s [{low:.2}, {high:.2}]", estimate.value),
        None => format!("{:.2} s", estimate.value),
    }
}

/// Two programs that run in turn, and the largest allowed time.
#[derive(Debug, Clone, Copy)]
struct Pair {
    peer: &'static str,
    ours: &'static str,
    bar: TimeBar,
}

impl Pair {
    /// iosonde beside `kubectl run`.
    fn beside_kubectl(smoke: bool) -> Pair {
        Pair {
            peer: "kubectl run",
            ours: "iosonde fio",
            bar: TimeBar::DifferenceS(match smoke {
                true => MOST_OF_SMOKE_S,
                false => MOST_UNTIL_FIRST_IO_S,
            }),
        }
    }

    /// iosonde beside kubestr. iosonde must be the faster one.
    fn beside_kubestr(smoke: bool, most: f64) -> Pair {
        Pair {
            peer: "kubestr fio",
            ours: "iosonde k8s fio",
            bar: TimeBar::Ratio(if smoke { MOST_RATIO_OF_SMOKE } else { most }),
        }
    }
}

/// Runs both programs in turn and returns their times, round by round.
fn in_turn<T>(
    rounds: usize,
    interrupted: &AtomicBool,
    peer: impl Fn() -> Result<T>,
    ours: impl Fn() -> Result<T>,
) -> Result<[Vec<T>; 2]> {
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
            samples[who].push(took?);
        }
    }
    Ok(samples)
}

/// Returns one time of each run, in seconds.
fn in_seconds<T>(samples: &[Vec<T>; 2], time: impl Fn(&T) -> Duration) -> [Vec<f64>; 2] {
    let seconds = |runs: &Vec<T>| runs.iter().map(|run| time(run).as_secs_f64()).collect();
    [seconds(&samples[0]), seconds(&samples[1])]
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
    let samples = in_seconds(&samples, |took| *took);
    let start = KubeComparison::compare(what, Pair::beside_kubectl(arguments.smoke), samples);
    print!("{}", start.text());
    let mut findings = vec![start];
    for whole in beside_kubestr(arguments, &cluster, &runs, (rounds, length_s), &interrupted)? {
        print!("{}", whole.text());
        findings.push(whole);
    }
    super::write_json(arguments.json.as_deref(), &findings)?;
    Ok(findings.iter().all(KubeComparison::is_met))
}

/// Compares two times of the same job, if kubestr is installed: to the result, and until nothing is
/// left.
fn beside_kubestr(
    arguments: &Arguments,
    cluster: &KubeBenchCluster,
    runs: &KubeRuns<'_>,
    (rounds, length_s): (usize, u32),
    interrupted: &AtomicBool,
) -> Result<[KubeComparison; 2]> {
    let whats = [
        format!("from command to the result of a job of {length_s} s, beside kubestr"),
        format!("from command until nothing is left of a job of {length_s} s, beside kubestr"),
    ];
    let pairs = [MOST_TO_RESULT, MOST_TO_NOTHING_LEFT]
        .map(|most| Pair::beside_kubestr(arguments.smoke, most));
    let [result, nothing_left] = whats;
    let kubestr = arguments.kubestr.as_deref();
    let Some(kubestr) = present(kubestr, Path::new("kubestr"))? else {
        let reason = || "kubestr is not installed: name one with --kubestr".to_owned();
        return Ok([
            KubeComparison::left_out(result, pairs[0], reason()),
            KubeComparison::left_out(nothing_left, pairs[1], reason()),
        ]);
    };
    let job = BenchJobFile::new(length_s)?;
    let image = arguments.kubestr_image.as_deref().or(cluster.fio_image);
    let samples = in_turn(
        rounds,
        interrupted,
        || runs.kubestr(kubestr, image, &job),
        || runs.as_kubestr(&job),
    )?;
    let to_result = in_seconds(&samples, |times: &JobTimes| times.result);
    let to_nothing_left = in_seconds(&samples, |times: &JobTimes| times.nothing_left);
    Ok([
        KubeComparison::compare(result, pairs[0], to_result),
        KubeComparison::compare(nothing_left, pairs[1], to_nothing_left),
    ])
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
    fn time_beside_kubestr_is_judged_by_its_ratio() {
        let compare = |ours_s: &[f64]| {
            let samples = [vec![10.0, 20.0], ours_s.to_vec()];
            let pair = Pair::beside_kubestr(false, MOST_TO_RESULT);
            KubeComparison::compare("result".to_owned(), pair, samples)
        };
        let met = compare(&[7.0, 14.0]);
        assert!(met.is_met());
        let text = met.text();
        let expected = "met    iosonde k8s fio / kubestr fio = 0.70 [0.70, 0.70], to be at most \
                        0.75\n";
        assert!(text.contains(expected), "{text}");
        assert!(!compare(&[8.0, 16.0]).is_met());
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
            KubeComparison::left_out("all".to_owned(), Pair::beside_kubestr(false, 0.9), reason);
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
        let samples = in_seconds(&samples, |took: &Duration| *took);
        assert_eq!(samples, [vec![2.0; 3], vec![1.0; 3]]);
        assert_eq!(*order.borrow(), "pooppo".to_owned());
        interrupted.store(true, Relaxed);
        let error = in_turn(3, &interrupted, takes('p', 2), takes('o', 1)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
    }
}
