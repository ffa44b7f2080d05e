//! `iosonde rados bench` beside Ceph's own `rados bench`, on the same cluster and the same objects.
//!
//! Both are bound by the cluster, so that rates can only be as good; what a client costs is processor time. Of both it is
//! the time of the whole process that counts, connecting included: librados works on threads of its own. Where that is most of it, a
//! client that does nothing else takes its turn as well, and shows how little it can be.

pub(crate) mod bare;
mod cluster;
mod work;

use super::bars::Limit;
use super::ratio::Estimate;
use super::report::{interval, word};
use anyhow::{Result, bail, ensure};
use cluster::Cluster;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use work::{Client, Sample, Work};

/// The most processor time of an operation, beside that of the bare client.
const MOST_OVER_LEAST: f64 = 1.15;

/// What `cargo xtask bench ceph` is asked for.
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

/// One kind of work, and how both did it.
#[derive(Debug, Serialize)]
struct Finding {
    work: String,
    rados_bench: Vec<Sample>,
    iosonde: Vec<Sample>,
    bare_client: Vec<Sample>,
    /// Of what iosonde moved in a second, to what `rados bench` moved.
    rate: Verdict,
    /// Of the processor time of an operation.
    cpu: Verdict,
    /// The same of the bare client, where it took its turn.
    least_cpu: Option<Estimate>,
    /// Of iosonde's processor time to the bare client's.
    cpu_over_least: Option<Verdict>,
}

/// A ratio beside its bar.
#[derive(Debug, Serialize)]
struct Verdict {
    ratio: Estimate,
    limit: Option<Limit>,
    met: bool,
}

impl Verdict {
    /// Two programs that are as fast as each other are on both sides of 1 by turns: a rate misses its bar when all of its
    /// interval does.
    fn of(ratio: Estimate, limit: Option<Limit>) -> Verdict {
        let (low, high) = ratio.interval.unwrap_or((ratio.value, ratio.value));
        let met = limit.is_none_or(|limit| match limit {
            Limit::AtLeast(_) => limit.admits(high),
            Limit::AtMost(_) => limit.admits(ratio.value),
        });
        debug_assert!(low <= high);
        Verdict { ratio, limit, met }
    }

    /// For a bar that is close to what is: it is missed when all of the interval misses it.
    fn unless_surely_above(ratio: Estimate, limit: Option<Limit>) -> Verdict {
        let (low, _) = ratio.interval.unwrap_or((ratio.value, ratio.value));
        let met = limit.is_none_or(|limit| limit.admits(low));
        Verdict { ratio, limit, met }
    }

    fn text(&self, name: &str) -> String {
        let bar = self.limit.map_or_else(String::new, |limit| {
            format!(", to be {}: {}", limit.text(), word(self.met))
        });
        format!("  {name:<10} {}{bar}\n", interval(self.ratio))
    }
}

impl Finding {
    fn of(work: &Work, [theirs, ours, bare]: [Vec<Sample>; 3], with_bars: bool) -> Finding {
        let between = |some: &[Sample], others: &[Sample], figure: fn(&Sample) -> f64| {
            let values = |samples: &[Sample]| samples.iter().map(figure).collect::<Vec<_>>();
            Estimate::ratio(&values(some), &values(others))
        };
        let ratio = |figure| between(&ours, &theirs, figure);
        let least = |some: &[Sample], others: &[Sample]| {
            (!bare.is_empty()).then(|| between(some, others, |sample| sample.cpu_us))
        };
        let bar = |limit| with_bars.then_some(limit);
        Finding {
            work: work.name(),
            rate: Verdict::of(
                ratio(|sample| sample.ops_per_second),
                bar(Limit::AtLeast(1.0)),
            ),
            cpu: Verdict::of(
                ratio(|sample| sample.cpu_us),
                bar(Limit::AtMost(work.most_cpu())),
            ),
            least_cpu: least(&bare, &theirs),
            cpu_over_least: least(&ours, &bare).map(|ratio| {
                Verdict::unless_surely_above(ratio, bar(Limit::AtMost(MOST_OVER_LEAST)))
            }),
            rados_bench: theirs,
            iosonde: ours,
            bare_client: bare,
        }
    }

    fn text(&self, work: &Work) -> String {
        let mut text = format!("\n{}\n", self.work);
        for (client, samples) in [
            (Client::RadosBench, &self.rados_bench),
            (Client::Iosonde, &self.iosonde),
            (Client::Bare, &self.bare_client),
        ] {
            if samples.is_empty() {
                continue;
            }
            let mean = |figure: fn(&Sample) -> f64| {
                Estimate::mean(&samples.iter().map(figure).collect::<Vec<_>>()).value
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

    /// Whether the bar of processor time is beyond what librados needs itself, and so is no failure of iosonde's.
    fn is_out_of_reach(&self) -> bool {
        let least = self
            .least_cpu
            .map(|least| Verdict::of(least, self.cpu.limit));
        least.is_some_and(|least| !least.met)
    }

    /// Whether all bars were met that can be.
    fn is_good(&self) -> bool {
        let over_least = self.cpu_over_least.as_ref();
        self.rate.met
            && (self.cpu.met || self.is_out_of_reach())
            && over_least.is_none_or(|over| over.met)
    }
}

/// Runs the bench. Whether all bars were met that can be.
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
        Some(conf) => Cluster::given(conf, &arguments.pool),
        None => Cluster::started(&arguments.pool)?,
    };
    println!(
        "iosonde rados bench / rados bench on {}, 16 in flight; {rounds} runs of up to {seconds} s each, in turn; \
         95 % intervals",
        cluster.description
    );
    let runs = work::Runs {
        cluster: &cluster,
        iosonde,
        seconds,
    };
    let mut findings = Vec::new();
    for work in Work::all(arguments.smoke) {
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
        let finding = Finding::of(&work, samples, !arguments.smoke);
        print!("{}", finding.text(&work));
        findings.push(finding);
    }
    ensure!(
        !findings.is_empty(),
        "no work's name has `{}` in it",
        arguments.only
    );
    super::write_json(arguments.json.as_deref(), &findings)?;
    Ok(findings.iter().all(Finding::is_good))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ops_per_second: f64, cpu_us: f64) -> Sample {
        Sample {
            ops_per_second,
            cpu_us,
        }
    }

    #[test]
    fn a_rate_is_missed_when_it_is_surely_lower_and_processor_time_by_its_mean() {
        let work = &Work::all(false)[0];
        assert!(work.is_write() && work.op_bytes == 4096);
        let theirs = || vec![sample(100.0, 10.0); 3];
        let noisy = [90.0, 100.0, 105.0].map(|rate| sample(rate, 7.9)).to_vec();
        let finding = Finding::of(work, [theirs(), noisy, Vec::new()], true);
        assert!(finding.rate.met && finding.cpu.met, "{finding:?}");
        let slow = vec![sample(90.0, 8.1); 3];
        let bare = vec![sample(100.0, 7.5); 3];
        let finding = Finding::of(work, [theirs(), slow, bare], true);
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
    fn what_librados_takes_itself_is_not_held_against_iosonde() {
        let work = &Work::all(false)[0];
        let finding = |ours: f64, bare: f64| {
            // By turns a tenth more and less: it is the mean that counts.
            let samples = |us: f64| [0.9, 1.0, 1.0 / 0.9].map(|part| sample(100.0, us * part));
            let steady = vec![sample(100.0, 10.0); 3];
            let all = [steady, samples(ours).to_vec(), samples(bare).to_vec()];
            Finding::of(work, all, true)
        };
        let is_good = |ours, bare| finding(ours, bare).is_good();
        assert!(is_good(7.9, 8.1), "the bar is met");
        assert!(!is_good(8.5, 7.9), "it is missed, and could be met");
        assert!(is_good(8.7, 8.1), "nobody can meet it");
        assert!(
            !is_good(9.9, 8.1),
            "and this is far more than there must be"
        );
    }
}
