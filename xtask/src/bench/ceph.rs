//! Compares `iosonde rados bench` with Ceph's `rados bench`, on the same cluster and objects.
//!
//! The cluster limits the rate of both, so the cost of a client is its CPU time: that of the whole
//! process with its connection, since librados has own threads. For small writes, librados uses
//! most of it: there a bare client runs too and shows the lower bound. On an image, fio's engine
//! rbd is the peer, and another bare client shows the lower bound of librbd for reads.

pub(crate) mod bare_client;
pub(crate) mod bare_image;
mod ceph_cluster;
mod image_runs;
mod rados_runs;

use super::bars::RatioBound;
use super::ratio::IntervalEstimate;
use super::report::{interval, met_word};
use anyhow::{Result, bail, ensure};
use ceph_cluster::CephBenchCluster;
use image_runs::{BenchImage, ImageComparison, ImageWork};
use rados_runs::{ComparedClient, RadosRuns, RadosSample, RadosWork};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Largest allowed ratio of CPU time per operation, iosonde to the bare client.
const MOST_OVER_LEAST: f64 = 1.15;

/// Options of `cargo xtask bench ceph`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Runs of each program of each kind
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Length of a run in seconds, at most
    #[arg(long, default_value_t = 8)]
    seconds: u32,
    /// Configuration of a cluster [default: a small one is started, and removed]
    #[arg(long)]
    conf: Option<PathBuf>,
    /// The pool
    #[arg(long, default_value = "testbench")]
    pool: String,
    /// A built iosonde [default: build it]
    #[arg(long)]
    iosonde: Option<PathBuf>,
    /// Only kinds of work whose name has this in it, e.g. "write" or "4M"
    #[arg(long, default_value = "")]
    only: String,
    /// One run of a second each, without bars: shows that the bench works
    #[arg(long)]
    smoke: bool,
    /// Also write everything here, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct CephBenchDocument {
    rados: Vec<RadosComparison>,
    /// I/O on an image.
    image: Vec<ImageComparison>,
}

/// Results of one kind of work.
#[derive(Debug, Serialize)]
struct RadosComparison {
    work: String,
    rados_bench: Vec<RadosSample>,
    iosonde: Vec<RadosSample>,
    bare_client: Vec<RadosSample>,
    /// Ratio of operations per second, iosonde to `rados bench`.
    rate: RatioVerdict,
    /// Ratio of CPU time per operation, iosonde to `rados bench`.
    cpu: RatioVerdict,
    /// Ratio of CPU time per operation, bare client to `rados bench`, where the bare client ran.
    least_cpu: Option<IntervalEstimate>,
    /// Ratio of CPU time per operation, iosonde to the bare client.
    cpu_over_least: Option<RatioVerdict>,
}

/// A ratio with its bar.
#[derive(Debug, Serialize)]
struct RatioVerdict {
    ratio: IntervalEstimate,
    limit: Option<RatioBound>,
    met: bool,
}

impl RatioVerdict {
    /// Judges CPU time by its mean. A rate misses its bars only when the whole interval does, as
    /// equally fast programs lie on either side of 1 by chance.
    fn judge(ratio: IntervalEstimate, limit: Option<RatioBound>) -> RatioVerdict {
        let (low, high) = ratio.interval.unwrap_or((ratio.value, ratio.value));
        let met = limit.is_none_or(|limit| match limit {
            RatioBound::AtLeast(_) => limit.admits(high),
            RatioBound::AtMost(_) => limit.admits(ratio.value),
            RatioBound::Between(least, most) => high >= least && low <= most,
        });
        debug_assert!(low <= high);
        RatioVerdict { ratio, limit, met }
    }

    /// For a bar close to the usual ratio: missed only when the whole interval misses the bar.
    fn unless_surely_above(ratio: IntervalEstimate, limit: Option<RatioBound>) -> RatioVerdict {
        let (low, _) = ratio.interval.unwrap_or((ratio.value, ratio.value));
        let met = limit.is_none_or(|limit| limit.admits(low));
        RatioVerdict { ratio, limit, met }
    }

    fn text(&self, name: &str) -> String {
        let bar = self.limit.map_or_else(String::new, |limit| {
            format!(", to be {}: {}", limit.text(), met_word(self.met))
        });
        format!("  {name:<10} {}{bar}\n", interval(self.ratio))
    }
}

impl RadosComparison {
    fn compare(
        work: &RadosWork,
        [theirs, ours, bare]: [Vec<RadosSample>; 3],
        with_bars: bool,
    ) -> RadosComparison {
        let between = |some: &[RadosSample],
                       others: &[RadosSample],
                       figure: fn(&RadosSample) -> f64| {
            let values = |samples: &[RadosSample]| samples.iter().map(figure).collect::<Vec<_>>();
            IntervalEstimate::ratio(&values(some), &values(others))
        };
        let ratio = |figure| between(&ours, &theirs, figure);
        let least = |some: &[RadosSample], others: &[RadosSample]| {
            (!bare.is_empty()).then(|| between(some, others, |sample| sample.cpu_us))
        };
        let bar = |limit| with_bars.then_some(limit);
        RadosComparison {
            work: work.name(),
            rate: RatioVerdict::judge(
                ratio(|sample| sample.ops_per_second),
                bar(RatioBound::AtLeast(1.0)),
            ),
            cpu: RatioVerdict::judge(
                ratio(|sample| sample.cpu_us),
                bar(RatioBound::AtMost(work.most_cpu())),
            ),
            least_cpu: least(&bare, &theirs),
            cpu_over_least: least(&ours, &bare).map(|ratio| {
                RatioVerdict::unless_surely_above(ratio, bar(RatioBound::AtMost(MOST_OVER_LEAST)))
            }),
            rados_bench: theirs,
            iosonde: ours,
            bare_client: bare,
        }
    }

    fn text(&self, work: &RadosWork) -> String {
        let mut text = format!("\n{}\n", self.work);
        for (client, samples) in [
            (ComparedClient::RadosBench, &self.rados_bench),
            (ComparedClient::Iosonde, &self.iosonde),
            (ComparedClient::Bare, &self.bare_client),
        ] {
            if samples.is_empty() {
                continue;
            }
            let mean = |figure: fn(&RadosSample) -> f64| {
                IntervalEstimate::mean(&samples.iter().map(figure).collect::<Vec<_>>()).value
            };
            let rate = mean(|sample| sample.ops_per_second);
            text.push_str(&format!(
                "  {:<12} {:9.1} MiB/s  {rate:9.1} IOPS  {:9.2} us CPU/op\n",
                client.name(),
                rate * work.op_bytes as f64 / f64::from(1 << 20),
                mean(|sample| sample.cpu_us),
            ));
        }
        text += &self.rate.text("rate");
        text += &self.cpu.text("CPU/op");
        if let (Some(least), Some(over)) = (self.least_cpu, &self.cpu_over_least) {
            let too = match self.is_out_of_reach() && !self.cpu.met {
                true => ", which misses it, too",
                false => "",
            };
            text += &format!(
                "  {:<10} {}, of the bare client{too}\n",
                "",
                interval(least)
            );
            text += &over.text("to bare");
        }
        text
    }

    /// Whether librados alone exceeds the bar of CPU time: the table says so beside a missed bar.
    fn is_out_of_reach(&self) -> bool {
        let least = self
            .least_cpu
            .map(|least| RatioVerdict::judge(least, self.cpu.limit));
        least.is_some_and(|least| !least.met)
    }

    /// Whether all bars were met.
    fn is_good(&self) -> bool {
        let over_least = self.cpu_over_least.as_ref();
        self.rate.met && self.cpu.met && over_least.is_none_or(|over| over.met)
    }
}

/// Runs the benchmark and returns whether all bars were met.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let (rounds, seconds) = match arguments.smoke {
        true => (1, 1),
        false => (arguments.runs, arguments.seconds),
    };
    ensure!(rounds > 0 && seconds > 0, "there is nothing to run");
    let interrupted = super::interruptions()?;
    let iosonde = match &arguments.iosonde {
        Some(path) => path.clone(),
        None => super::built_iosonde()?,
    };
    let cluster = match &arguments.conf {
        Some(conf) => CephBenchCluster::from_conf(conf, &arguments.pool),
        None => CephBenchCluster::started(&arguments.pool)?,
    };
    println!(
        "iosonde rados bench / rados bench on {}, 16 in flight; \
         {rounds} runs of up to {seconds} s each, in turn; 95 % intervals",
        cluster.description
    );
    let runs = RadosRuns {
        cluster: &cluster,
        iosonde,
        seconds,
    };
    let rados = compare_rados(&runs, arguments, rounds, &interrupted)?;
    let image = compare_on_image(&runs, arguments, rounds, &interrupted)?;
    ensure!(
        !rados.is_empty() || !image.is_empty(),
        "no work's name has `{}` in it",
        arguments.only
    );
    let document = CephBenchDocument { rados, image };
    super::write_json(arguments.json.as_deref(), &document)?;
    Ok(document.rados.iter().all(RadosComparison::is_good)
        && document.image.iter().all(ImageComparison::is_good))
}

/// Compares the kinds of work on an image, and prints the results.
fn compare_on_image(
    runs: &RadosRuns<'_>,
    arguments: &Arguments,
    rounds: usize,
    interrupted: &AtomicBool,
) -> Result<Vec<ImageComparison>> {
    let mut kinds = ImageWork::list_kinds();
    kinds.retain(|work| work.name().contains(&arguments.only));
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let image = BenchImage::create(runs)?;
    let mut findings = Vec::new();
    for work in kinds {
        let samples = image.measure(work, rounds, interrupted)?;
        let finding = ImageComparison::compare(work, samples, !arguments.smoke);
        print!("{}", finding.text());
        findings.push(finding);
    }
    Ok(findings)
}

/// Compares the kinds of work of `rados bench`, and prints the results.
fn compare_rados(
    runs: &RadosRuns<'_>,
    arguments: &Arguments,
    rounds: usize,
    interrupted: &AtomicBool,
) -> Result<Vec<RadosComparison>> {
    let mut findings = Vec::new();
    for work in RadosWork::list_kinds(arguments.smoke) {
        if !work.name().contains(&arguments.only) {
            continue;
        }
        let objects = (!work.is_write())
            .then(|| runs.objects(&work))
            .transpose()?;
        let mut samples = [const { Vec::new() }; 3];
        for round in 0..rounds {
            for client in work.clients(round) {
                let sample = runs.run(client, &work, objects.as_ref());
                if interrupted.load(Relaxed) {
                    bail!("interrupted");
                }
                samples[client as usize].push(sample?);
            }
        }
        let finding = RadosComparison::compare(&work, samples, !arguments.smoke);
        print!("{}", finding.text(&work));
        findings.push(finding);
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ops_per_second: f64, cpu_us: f64) -> RadosSample {
        RadosSample {
            ops_per_second,
            cpu_us,
        }
    }

    #[test]
    fn rate_misses_by_interval_and_cpu_time_by_mean() {
        let work = &RadosWork::list_kinds(false)[0];
        assert!(work.is_write() && work.op_bytes == 4096);
        let theirs = || vec![sample(100.0, 10.0); 3];
        let noisy = [90.0, 100.0, 105.0].map(|rate| sample(rate, 7.9)).to_vec();
        let finding = RadosComparison::compare(work, [theirs(), noisy, Vec::new()], true);
        assert!(finding.rate.met && finding.cpu.met, "{finding:?}");
        let slow = vec![sample(90.0, 8.1); 3];
        let bare = vec![sample(100.0, 7.5); 3];
        let finding = RadosComparison::compare(work, [theirs(), slow, bare], true);
        assert!(!finding.rate.met && !finding.cpu.met, "{finding:?}");
        let text = finding.text(work);
        for words in [
            "rate       0.900 [0.900, 0.900], to be at least 1: MISSED",
            "CPU/op     0.810 [0.810, 0.810], to be at most 0.8: MISSED",
            " 0.750 [0.750, 0.750], of the bare client\n",
            "to bare    1.080 [1.080, 1.080], to be at most 1.15: met",
            "rados bench        0.4 MiB/s      100.0 IOPS      10.00 us CPU/op",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!finding.is_good());
    }

    #[test]
    fn cpu_bar_is_required_below_the_cost_of_librados() {
        let work = &RadosWork::list_kinds(false)[0];
        let finding = |ours: f64, bare: f64| {
            // Samples vary by a tenth: the mean decides.
            let samples = |us: f64| [0.9, 1.0, 1.0 / 0.9].map(|part| sample(100.0, us * part));
            let steady = vec![sample(100.0, 10.0); 3];
            let all = [steady, samples(ours).to_vec(), samples(bare).to_vec()];
            RadosComparison::compare(work, all, true)
        };
        let is_good = |ours, bare| finding(ours, bare).is_good();
        assert!(is_good(7.9, 8.1), "the bar is met");
        assert!(!is_good(8.5, 7.9), "the bar is missed");
        assert!(
            !is_good(8.7, 8.1),
            "the bar is missed, as by the bare client"
        );
        let text = finding(8.7, 8.1).text(work);
        assert!(text.contains("which misses it, too"), "{text}");
        assert!(
            !is_good(7.9, 6.0),
            "the cost is far above that of the bare client"
        );
    }
}
