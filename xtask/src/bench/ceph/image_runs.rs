//! Reads of an image by iosonde, fio and the bare image client, in turn.

use super::super::bars::RatioBound;
use super::super::program::{read_report, run_alone};
use super::super::ratio::IntervalEstimate;
use super::super::report::interval;
use super::rados_runs::{CONCURRENT, RadosRuns, RadosSample, ops_and_seconds};
use super::{CephBenchCluster, MOST_OVER_LEAST, RatioVerdict};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Name of the work, for `--only` and tables.
pub(super) const IMAGE_WORK: &str = "rbd randread 4k";

const OP_BYTES: u64 = 4096;
const IMAGE_MIB: u32 = 64;

/// Least and most operations per second, as shares of the bare image client's.
const RATE_BESIDE_BARE: RatioBound = RatioBound::Between(0.9, 1.1);

/// A program that reads the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageClient {
    Iosonde,
    /// The lower bound for a client of librbd.
    Bare,
    Fio,
}

impl ImageClient {
    /// Clients of a round in order, which varies.
    fn list_in_order(has_fio: bool, round: usize) -> Vec<ImageClient> {
        let mut clients = vec![ImageClient::Iosonde, ImageClient::Bare];
        if has_fio {
            clients.push(ImageClient::Fio);
        }
        let count = clients.len();
        clients.rotate_left(round % count);
        clients
    }
}

/// Results of all clients.
#[derive(Debug, Default, Serialize)]
pub(super) struct ImageSamples {
    iosonde: Vec<RadosSample>,
    bare_client: Vec<RadosSample>,
    /// Empty if fio is missing or cannot read images.
    fio: Vec<RadosSample>,
}

/// Results with their ratios.
#[derive(Debug, Serialize)]
pub(super) struct ImageComparison {
    samples: ImageSamples,
    /// Ratio of operations per second, iosonde to the bare image client.
    rate: RatioVerdict,
    /// Ratio of CPU time per operation, iosonde to the bare image client.
    cpu: RatioVerdict,
    /// Ratios of the same figures, iosonde to fio.
    beside_fio: Option<[IntervalEstimate; 2]>,
}

/// Ratios of operations per second and of CPU time per operation.
fn ratios(some: &[RadosSample], others: &[RadosSample]) -> [IntervalEstimate; 2] {
    let figures: [fn(&RadosSample) -> f64; 2] =
        [|sample| sample.ops_per_second, |sample| sample.cpu_us];
    figures.map(|figure| {
        let values = |samples: &[RadosSample]| samples.iter().map(figure).collect::<Vec<_>>();
        IntervalEstimate::ratio(&values(some), &values(others))
    })
}

impl ImageComparison {
    /// Computes the ratios. The bars are left out unless `with_bars`.
    pub(super) fn compare(samples: ImageSamples, with_bars: bool) -> ImageComparison {
        let [rate, cpu] = ratios(&samples.iosonde, &samples.bare_client);
        let bar = |limit| with_bars.then_some(limit);
        ImageComparison {
            rate: RatioVerdict::judge(rate, bar(RATE_BESIDE_BARE)),
            cpu: RatioVerdict::unless_surely_above(cpu, bar(RatioBound::AtMost(MOST_OVER_LEAST))),
            beside_fio: (!samples.fio.is_empty()).then(|| ratios(&samples.iosonde, &samples.fio)),
            samples,
        }
    }

    /// The comparison as a table.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{IMAGE_WORK}\n");
        for (name, samples) in [
            ("iosonde", &self.samples.iosonde),
            ("bare client", &self.samples.bare_client),
            ("fio", &self.samples.fio),
        ] {
            if samples.is_empty() {
                continue;
            }
            let mean = |figure: fn(&RadosSample) -> f64| {
                IntervalEstimate::mean(&samples.iter().map(figure).collect::<Vec<_>>()).value
            };
            text.push_str(&format!(
                "  {name:<12} {:9.1} IOPS  {:9.2} us CPU/op\n",
                mean(|sample| sample.ops_per_second),
                mean(|sample| sample.cpu_us),
            ));
        }
        text += &self.rate.text("to bare");
        text += &self.cpu.text("CPU/op");
        if let Some([rate, cpu]) = self.beside_fio {
            text += &format!(
                "  {:<10} {}, CPU/op {}\n",
                "to fio",
                interval(rate),
                interval(cpu)
            );
        }
        text
    }

    /// Whether all bars were met.
    pub(super) fn is_good(&self) -> bool {
        self.rate.met && self.cpu.met
    }
}

/// The command `rbd` for the cluster.
fn rbd(cluster: &CephBenchCluster, words: &[&str]) -> Command {
    let mut command = cluster.command(Path::new("rbd"));
    command.args(words);
    command
}

/// An image with data, removed when dropped.
pub(super) struct BenchImage<'a> {
    runs: &'a RadosRuns<'a>,
    name: String,
}

impl<'a> BenchImage<'a> {
    /// Creates an image and fills it.
    pub(super) fn create(runs: &'a RadosRuns<'a>) -> Result<BenchImage<'a>> {
        let name = format!("iosonde-bench-{}", std::process::id());
        let path = format!("{}/{name}", runs.cluster.pool);
        let size = format!("--size={IMAGE_MIB}M");
        run_alone(&mut rbd(runs.cluster, &["create", &size, &path]))?;
        let image = BenchImage { runs, name };
        let total = format!("--io-total={IMAGE_MIB}M");
        let words = ["bench", "--io-type=write", "--io-size=4M", &total, &path];
        run_alone(&mut rbd(runs.cluster, &words))?;
        Ok(image)
    }

    /// Options of fio's job, which iosonde accepts too.
    fn job(&self) -> Vec<String> {
        let runtime = format!("--runtime={}", self.runs.seconds);
        let (pool, image) = (&self.runs.cluster.pool, &self.name);
        let mut words: Vec<String> = [
            "--name=bench",
            "--ioengine=rbd",
            "--clientname=admin",
            "--rw=randread",
            "--bs=4k",
            "--thread=1",
            "--time_based",
            "--output-format=json",
            "--eta=never",
        ]
        .map(str::to_owned)
        .to_vec();
        words.extend([
            format!("--pool={pool}"),
            format!("--rbdname={image}"),
            format!("--iodepth={CONCURRENT}"),
            runtime,
        ]);
        words
    }

    /// Reads the image once.
    fn run(&self, client: ImageClient) -> Result<RadosSample> {
        let cluster = self.runs.cluster;
        let mut command = match client {
            ImageClient::Bare => return self.run_bare(),
            ImageClient::Fio => cluster.command(Path::new("fio")),
            ImageClient::Iosonde => {
                let mut command = cluster.command(&self.runs.iosonde);
                command.arg("fio");
                command
            }
        };
        command.args(self.job());
        let (text, used) = run_alone(&mut command)?;
        let sample =
            read_report(&text, used).with_context(|| format!("the report of {command:?}"))?;
        Ok(RadosSample {
            ops_per_second: sample.iops,
            cpu_us: sample.process_per_io.user_us + sample.process_per_io.system_us,
        })
    }

    fn run_bare(&self) -> Result<RadosSample> {
        let this = std::env::current_exe().context("finding this program")?;
        let mut command = self.runs.cluster.command(&this);
        command.args(["bare-image", "--pool", &self.runs.cluster.pool]);
        command.args(["--image", &self.name, "--concurrent", CONCURRENT]);
        command.arg(format!("--op-bytes={OP_BYTES}"));
        command.arg(format!("--seconds={}", self.runs.seconds));
        let (text, used) = run_alone(&mut command)?;
        let (ops, seconds) = ops_and_seconds(&text).context("the bare image client's outcome")?;
        Ok(RadosSample {
            ops_per_second: ops / seconds,
            cpu_us: (used.user_us + used.system_us) / ops,
        })
    }

    /// Lets the clients read in turn.
    pub(super) fn measure(&self, rounds: usize, interrupted: &AtomicBool) -> Result<ImageSamples> {
        let has_fio = fio_reads_images();
        if !has_fio {
            println!("\nfio is missing or has no engine rbd: {IMAGE_WORK} is measured without it");
        }
        let mut samples = ImageSamples::default();
        for round in 0..rounds {
            for client in ImageClient::list_in_order(has_fio, round) {
                let sample = self.run(client);
                if interrupted.load(Relaxed) {
                    bail!("interrupted");
                }
                let of_client = match client {
                    ImageClient::Iosonde => &mut samples.iosonde,
                    ImageClient::Bare => &mut samples.bare_client,
                    ImageClient::Fio => &mut samples.fio,
                };
                of_client.push(sample?);
            }
        }
        Ok(samples)
    }
}

impl Drop for BenchImage<'_> {
    fn drop(&mut self) {
        let cluster = self.runs.cluster;
        let path = format!("{}/{}", cluster.pool, self.name);
        let removed = rbd(cluster, &["rm", "--no-progress", &path]).output();
        if !removed.is_ok_and(|output| output.status.success()) {
            eprintln!("left behind: the image {path}");
        }
    }
}

/// Whether the installed fio has the engine rbd.
fn fio_reads_images() -> bool {
    let output = Command::new("fio").arg("--enghelp").output();
    output.is_ok_and(|output| has_engine(&String::from_utf8_lossy(&output.stdout), "rbd"))
}

/// Whether the output of `fio --enghelp` lists an engine.
fn has_engine(help: &str, engine: &str) -> bool {
    help.lines().any(|line| line.trim() == engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(ops_per_second: f64, cpu_us: f64) -> Vec<RadosSample> {
        let sample = RadosSample {
            ops_per_second,
            cpu_us,
        };
        vec![sample; 3]
    }

    #[test]
    fn image_rate_is_held_between_two_bounds() {
        for (rate, cpu_us, is_good) in [
            (100.0, 10.0, true),
            (89.0, 10.0, false),
            (111.0, 10.0, false),
            (100.0, 11.6, false),
        ] {
            let all = ImageSamples {
                iosonde: samples(rate, cpu_us),
                bare_client: samples(100.0, 10.0),
                fio: Vec::new(),
            };
            let comparison = ImageComparison::compare(all, true);
            assert_eq!(comparison.is_good(), is_good, "{comparison:?}");
            assert!(comparison.beside_fio.is_none());
        }
    }

    #[test]
    fn image_table_has_rows_and_ratios_of_all_clients() {
        let all = ImageSamples {
            iosonde: samples(100.0, 10.0),
            bare_client: samples(100.0, 8.0),
            fio: samples(50.0, 20.0),
        };
        let text = ImageComparison::compare(all, true).text();
        for words in [
            "  bare client      100.0 IOPS       8.00 us CPU/op\n",
            "  to bare    1.000 [1.000, 1.000], to be from 0.9 to 1.1: met\n",
            "  CPU/op     1.250 [1.250, 1.250], to be at most 1.15: MISSED\n",
            "  to fio     2.000 [2.000, 2.000], CPU/op 0.500 [0.500, 0.500]\n",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn client_order_rotates_and_leaves_out_missing_fio() {
        use ImageClient::{Bare, Fio, Iosonde};
        assert_eq!(ImageClient::list_in_order(true, 1), [Bare, Fio, Iosonde]);
        assert_eq!(ImageClient::list_in_order(false, 3), [Bare, Iosonde]);
        assert!(has_engine("Available IO engines:\n\trados\n\trbd\n", "rbd"));
        assert!(!has_engine("Available IO engines:\n\trados\n", "rbd"));
    }
}
