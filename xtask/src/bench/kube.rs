//! Times on a cluster: `iosonde fio` beside `kubectl run`, and `iosonde k8s fio` beside kubestr, to
//! the result and to the exit. Requests to the API server of a run of one pod.
//!
//! The cluster takes most of the time: it provisions a volume and starts a pod. Its time
//! varies more than the programs differ. They run in turn, and are compared round by round.

mod kube_cluster;
mod kube_comparison;
mod kube_requests;
mod kube_runs;

use anyhow::{Context, Result, bail, ensure};
use kube_cluster::{KubeBenchCluster, Namespace};
use kube_comparison::{KubeComparison, MOST_TO_EXIT, MOST_TO_RESULT, Pair};
use kube_requests::{RequestCount, measure_request_count};
use kube_runs::{BenchJobFile, JobTimes, KubeRuns};
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Runs whose requests are counted, at most: they hardly vary.
const COUNTED_RUNS: usize = 3;

/// Options of `cargo xtask bench kube`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Rounds of each pair of programs, an even number: each program is the first in half of them
    #[arg(long, default_value_t = 6, value_parser = even_rounds)]
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
    /// The storage classes, e.g. fast,cheap [default: loop-ext4,local-path]
    #[arg(long = "class", value_delimiter = ',')]
    classes: Vec<String>,
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
    /// kubestr [default: the one in PATH; without it, its bars are missed]
    #[arg(long)]
    kubestr: Option<PathBuf>,
    /// Image of kubestr's pod: one with fio [default: the tests' cluster's, else kubestr's own]
    #[arg(long)]
    kubestr_image: Option<String>,
    /// One round with generous bars, without missing programs: shows that the bench works
    #[arg(long)]
    smoke: bool,
    /// Also write everything here, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Output of `--json`.
#[derive(Debug, Default, Serialize)]
struct KubeBenchDocument {
    times: Vec<KubeComparison>,
    requests: Vec<RequestCount>,
}

impl KubeBenchDocument {
    /// Whether all bars were met. A bar that was not measured is not met, except with `--smoke`,
    /// and except for requests to a cluster whose audit log cannot be read.
    fn is_good(&self, may_leave_out: bool) -> bool {
        let is_time_good =
            |time: &KubeComparison| time.is_met() || (may_leave_out && time.is_left_out());
        let is_count_good = |count: &RequestCount| {
            let may_leave_out = may_leave_out || count.is_uncountable();
            count.is_met() || (may_leave_out && count.is_left_out())
        };
        self.times.iter().all(is_time_good) && self.requests.iter().all(is_count_good)
    }

    fn push_time(&mut self, time: KubeComparison) {
        print!("{}", time.text());
        self.times.push(time);
    }
}

/// Parses a number of rounds in which both orders of the programs are equally frequent.
fn even_rounds(text: &str) -> Result<usize> {
    let rounds: usize = text.parse().context("a number of rounds")?;
    ensure!(
        rounds > 0 && rounds.is_multiple_of(2),
        "an odd number of rounds favours one of the two orders"
    );
    Ok(rounds)
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

/// Returns one time of each run in seconds: for the peer, and for iosonde.
fn in_seconds<T>(samples: &[Vec<T>; 2], times: [fn(&T) -> Duration; 2]) -> [Vec<f64>; 2] {
    let seconds = |runs: &Vec<T>, time: fn(&T) -> Duration| {
        runs.iter().map(|run| time(run).as_secs_f64()).collect()
    };
    [
        seconds(&samples[0], times[0]),
        seconds(&samples[1], times[1]),
    ]
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
    let classes = match arguments.classes.as_slice() {
        [] => vec!["loop-ext4".to_owned(), "local-path".to_owned()],
        classes => classes.to_vec(),
    };
    println!(
        "iosonde beside kubectl and kubestr on {}: {}, claims of {}; \
         {rounds} rounds, in turn; 95 % intervals",
        cluster.description,
        classes.join(", "),
        arguments.size
    );
    // Before all measurements: the events would otherwise delay the later classes only.
    namespace.create_other_events(kube_requests::OTHER_EVENTS)?;
    let mut document = KubeBenchDocument::default();
    for class in classes {
        let runs = KubeRuns {
            namespace: &namespace,
            class,
            size: arguments.size.clone(),
            image: arguments.image.clone(),
            iosonde: iosonde.clone(),
        };
        document.push_time(beside_kubectl(arguments, &runs, rounds, &interrupted)?);
        let shape = (rounds, length_s);
        for time in beside_kubestr(arguments, &cluster, &runs, shape, &interrupted)? {
            document.push_time(time);
        }
        let audit_log = cluster.audit_log.as_deref();
        let count = measure_request_count(&runs, audit_log, rounds.min(COUNTED_RUNS))?;
        print!("{}", count.text());
        document.requests.push(count);
    }
    super::write_json(arguments.json.as_deref(), &document)?;
    Ok(document.is_good(arguments.smoke))
}

/// Compares the time to the first I/O with that of `kubectl run` to a running pod.
fn beside_kubectl(
    arguments: &Arguments,
    runs: &KubeRuns<'_>,
    rounds: usize,
    interrupted: &AtomicBool,
) -> Result<KubeComparison> {
    let what = format!(
        "from command to first I/O on {}, beside `kubectl run` of the same image to Running",
        runs.class
    );
    let samples = in_turn(
        rounds,
        interrupted,
        || runs.until_running(),
        || runs.until_first_io(),
    )?;
    let whole: fn(&Duration) -> Duration = |took| *took;
    let samples = in_seconds(&samples, [whole, whole]);
    let pair = Pair::beside_kubectl(arguments.smoke);
    Ok(KubeComparison::compare(what, pair, samples))
}

/// Compares two times beyond the I/O of the same job, if kubestr is installed: to the result, and
/// to the exit. iosonde has exited once nothing is left in the cluster; kubestr does not wait for
/// that.
fn beside_kubestr(
    arguments: &Arguments,
    cluster: &KubeBenchCluster,
    runs: &KubeRuns<'_>,
    (rounds, length_s): (usize, u32),
    interrupted: &AtomicBool,
) -> Result<[KubeComparison; 2]> {
    let class = &runs.class;
    let what = |end: &str| {
        format!("from command to {end} of a job of {length_s} s on {class}, less the job")
    };
    let [result, exit] = [what("the result"), what("the exit with nothing left")];
    let pairs =
        [MOST_TO_RESULT, MOST_TO_EXIT].map(|most| Pair::beside_kubestr(arguments.smoke, most));
    let kubestr = arguments.kubestr.as_deref();
    let Some(kubestr) = present(kubestr, Path::new("kubestr"))? else {
        let reason = || "kubestr is not installed: name one with --kubestr".to_owned();
        return Ok([
            KubeComparison::left_out(result, pairs[0], reason()),
            KubeComparison::left_out(exit, pairs[1], reason()),
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
    let to_result: fn(&JobTimes) -> Duration = |times| times.result;
    let to_exit: [fn(&JobTimes) -> Duration; 2] = [|times| times.exit, |times| times.nothing_left];
    Ok([
        KubeComparison::compare(
            result,
            pairs[0],
            in_seconds(&samples, [to_result, to_result]),
        ),
        KubeComparison::compare(exit, pairs[1], in_seconds(&samples, to_exit)),
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

    #[test]
    fn missing_kubestr_fails_all_but_the_smoke_run() {
        let (absent, there) = (Path::new("/nonexistent/kubestr"), Path::new("true"));
        assert_eq!(present(None, absent).unwrap(), None);
        assert_eq!(present(None, there).unwrap(), Some(there));
        // A missing program that was named is an error.
        assert!(present(Some(absent), there).is_err());
        let pair = Pair::beside_kubestr(false, MOST_TO_EXIT);
        let reason = "it is not installed".to_owned();
        let document = KubeBenchDocument {
            times: vec![KubeComparison::left_out("all".to_owned(), pair, reason)],
            requests: Vec::new(),
        };
        assert!(document.is_good(true));
        assert!(!document.is_good(false));
    }

    #[test]
    fn rounds_are_even_so_that_each_order_is_equally_frequent() {
        assert_eq!(even_rounds("6").unwrap(), 6);
        for refused in ["0", "5", "six"] {
            assert!(even_rounds(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn exit_of_kubestr_is_held_against_removal_by_iosonde() {
        let times = |result, exit, nothing_left| JobTimes {
            result: Duration::from_secs(result),
            exit: Duration::from_secs(exit),
            nothing_left: Duration::from_secs(nothing_left),
        };
        let samples = [vec![times(3, 4, 35)], vec![times(2, 3, 5)]];
        let to_exit: [fn(&JobTimes) -> Duration; 2] =
            [|times| times.exit, |times| times.nothing_left];
        assert_eq!(in_seconds(&samples, to_exit), [vec![4.0], vec![5.0]]);
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
        let whole: fn(&Duration) -> Duration = |took| *took;
        let samples = in_seconds(&samples, [whole, whole]);
        assert_eq!(samples, [vec![2.0; 3], vec![1.0; 3]]);
        assert_eq!(*order.borrow(), "pooppo".to_owned());
        interrupted.store(true, Relaxed);
        let error = in_turn(3, &interrupted, takes('p', 2), takes('o', 1)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
    }
}
