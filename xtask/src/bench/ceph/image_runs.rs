//! I/O on an image by iosonde, fio and the bare image client, in turn.

use super::super::bars::RatioBound;
use super::super::program::{read_report_of, run_alone};
use super::super::ratio::IntervalEstimate;
use super::rados_runs::{CONCURRENT, RadosRuns, RadosSample, ops_and_seconds};
use super::{CephBenchCluster, MOST_OVER_LEAST, RatioVerdict};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const SMALL_BYTES: u64 = 4 << 10;
const LARGE_BYTES: u64 = 4 << 20;
const IMAGE_MIB: u32 = 256;

/// Least and most operations per second, as shares of the bare image client's.
const RATE_BESIDE_BARE: RatioBound = RatioBound::Between(0.9, 1.1);

/// One kind of work on the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageWork {
    /// fio's `rw`.
    rw: &'static str,
    op_bytes: u64,
}

impl ImageWork {
    /// All kinds.
    pub(super) fn list_kinds() -> Vec<ImageWork> {
        let kinds = [
            ("randread", SMALL_BYTES),
            ("randwrite", SMALL_BYTES),
            ("read", LARGE_BYTES),
            ("write", LARGE_BYTES),
        ];
        kinds
            .map(|(rw, op_bytes)| ImageWork { rw, op_bytes })
            .to_vec()
    }

    /// Its name, for `--only` and tables.
    pub(super) fn name(self) -> String {
        format!("rbd {} {}", self.rw, self.size_text())
    }

    fn is_small(self) -> bool {
        self.op_bytes == SMALL_BYTES
    }

    fn size_text(self) -> &'static str {
        if self.is_small() { "4k" } else { "4M" }
    }

    /// The direction in reports of fio.
    fn direction(self) -> &'static str {
        if self.rw.ends_with("read") {
            "read"
        } else {
            "write"
        }
    }

    /// Whether the bare client can do the work: it only reads, at random.
    fn has_bare_client(self) -> bool {
        self.rw == "randread"
    }

    /// Largest allowed ratio of CPU time per operation, iosonde to fio.
    fn most_cpu(self) -> f64 {
        if self.is_small() { 0.8 } else { 1.2 }
    }
}

/// A program that uses the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageClient {
    Iosonde,
    /// The lower bound for a client of librbd.
    Bare,
    Fio,
}

impl ImageClient {
    /// Clients of a round in order, which varies.
    fn list_in_order(work: ImageWork, has_fio: bool, round: usize) -> Vec<ImageClient> {
        let mut clients = vec![ImageClient::Iosonde];
        if work.has_bare_client() {
            clients.push(ImageClient::Bare);
        }
        if has_fio {
            clients.push(ImageClient::Fio);
        }
        let count = clients.len();
        if round / count % 2 == 1 {
            clients.reverse();
        }
        clients.rotate_left(round % count);
        clients
    }
}

/// Results of all clients.
#[derive(Debug, Default, Serialize)]
pub(super) struct ImageSamples {
    iosonde: Vec<RadosSample>,
    /// Empty if the bare client cannot do the work.
    bare_client: Vec<RadosSample>,
    /// Empty if fio is missing or cannot use images.
    fio: Vec<RadosSample>,
}

/// Ratios of iosonde to another client.
#[derive(Debug, Serialize)]
struct ImageRatios {
    /// Ratio of operations per second.
    rate: RatioVerdict,
    /// Ratio of CPU time per operation.
    cpu: RatioVerdict,
}

/// Results with their ratios.
#[derive(Debug, Serialize)]
pub(super) struct ImageComparison {
    work: String,
    samples: ImageSamples,
    /// Whether bars are judged.
    with_bars: bool,
    beside_bare: Option<ImageRatios>,
    beside_fio: Option<ImageRatios>,
}

/// Ratios of operations per second and of CPU time per operation. `None` without others.
fn ratios(some: &[RadosSample], others: &[RadosSample]) -> Option<[IntervalEstimate; 2]> {
    let figures: [fn(&RadosSample) -> f64; 2] =
        [|sample| sample.ops_per_second, |sample| sample.cpu_us];
    (!others.is_empty()).then(|| {
        figures.map(|figure| {
            let values = |samples: &[RadosSample]| samples.iter().map(figure).collect::<Vec<_>>();
            IntervalEstimate::ratio(&values(some), &values(others))
        })
    })
}

impl ImageComparison {
    /// Computes the ratios. The bars are left out unless `with_bars`.
    pub(super) fn compare(
        work: ImageWork,
        samples: ImageSamples,
        with_bars: bool,
    ) -> ImageComparison {
        let bar = |limit| with_bars.then_some(limit);
        let beside_bare =
            ratios(&samples.iosonde, &samples.bare_client).map(|[rate, cpu]| ImageRatios {
                rate: RatioVerdict::judge(rate, bar(RATE_BESIDE_BARE)),
                cpu: RatioVerdict::unless_surely_above(
                    cpu,
                    bar(RatioBound::AtMost(MOST_OVER_LEAST)),
                ),
            });
        let beside_fio = ratios(&samples.iosonde, &samples.fio).map(|[rate, cpu]| ImageRatios {
            rate: RatioVerdict::judge(rate, bar(RatioBound::AtLeast(1.0))),
            cpu: RatioVerdict::judge(cpu, bar(RatioBound::AtMost(work.most_cpu()))),
        });
        ImageComparison {
            work: work.name(),
            samples,
            with_bars,
            beside_bare,
            beside_fio,
        }
    }

    /// The comparison as a table.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.work);
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
        for (name, ratios) in [("bare", &self.beside_bare), ("fio", &self.beside_fio)] {
            if let Some(ImageRatios { rate, cpu }) = ratios {
                text += &rate.text(&format!("to {name}"));
                text += &cpu.text("CPU/op");
            }
        }
        if self.beside_fio.is_none() {
            text += "  fio is missing or has no engine rbd: its bars are not measured\n";
        }
        text
    }

    /// Whether all bars were met. A bar that was not measured is missed.
    pub(super) fn is_good(&self) -> bool {
        let is_met = |ratios: &ImageRatios| ratios.rate.met && ratios.cpu.met;
        let is_bare_good = self.beside_bare.as_ref().is_none_or(is_met);
        let is_fio_good = self.beside_fio.as_ref().is_some_and(is_met);
        is_bare_good && (is_fio_good || !self.with_bars)
    }
}

/// The command `rbd` for the cluster.
fn rbd_command(cluster: &CephBenchCluster, words: &[&str]) -> Command {
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
        run_alone(&mut rbd_command(runs.cluster, &["create", &size, &path]))?;
        let image = BenchImage { runs, name };
        let total = format!("--io-total={IMAGE_MIB}M");
        let words = ["bench", "--io-type=write", "--io-size=4M", &total, &path];
        run_alone(&mut rbd_command(runs.cluster, &words))?;
        Ok(image)
    }

    /// Options of fio's job, which iosonde accepts too.
    fn job(&self, work: ImageWork) -> Vec<String> {
        let runtime = format!("--runtime={}", self.runs.seconds);
        let (pool, image) = (&self.runs.cluster.pool, &self.name);
        let mut words: Vec<String> = [
            "--name=bench",
            "--ioengine=rbd",
            "--clientname=admin",
            "--thread=1",
            "--time_based",
            "--output-format=json",
            "--eta=never",
        ]
        .map(str::to_owned)
        .to_vec();
        words.extend([
            format!("--rw={}", work.rw),
            format!("--bs={}", work.size_text()),
            format!("--pool={pool}"),
            format!("--rbdname={image}"),
            format!("--iodepth={CONCURRENT}"),
            runtime,
        ]);
        words
    }

    /// Does the work once.
    fn run(&self, client: ImageClient, work: ImageWork) -> Result<RadosSample> {
        let cluster = self.runs.cluster;
        let mut command = match client {
            ImageClient::Bare => return self.run_bare(work),
            ImageClient::Fio => cluster.command(Path::new("fio")),
            ImageClient::Iosonde => {
                let mut command = cluster.command(&self.runs.iosonde);
                command.arg("fio");
                command
            }
        };
        command.args(self.job(work));
        let (text, used) = run_alone(&mut command)?;
        let sample = read_report_of(&text, work.direction(), used)
            .with_context(|| format!("the report of {command:?}"))?;
        Ok(RadosSample {
            ops_per_second: sample.iops,
            cpu_us: sample.process_per_io.user_us + sample.process_per_io.system_us,
        })
    }

    fn run_bare(&self, work: ImageWork) -> Result<RadosSample> {
        let this = std::env::current_exe().context("finding this program")?;
        let mut command = self.runs.cluster.command(&this);
        command.args(["bare-image", "--pool", &self.runs.cluster.pool]);
        command.args(["--image", &self.name, "--concurrent", CONCURRENT]);
        command.arg(format!("--op-bytes={}", work.op_bytes));
        command.arg(format!("--seconds={}", self.runs.seconds));
        let (text, used) = run_alone(&mut command)?;
        let (ops, seconds) = ops_and_seconds(&text).context("the bare image client's outcome")?;
        Ok(RadosSample {
            ops_per_second: ops / seconds,
            cpu_us: (used.user_us + used.system_us) / ops,
        })
    }

    /// Lets the clients do the work in turn.
    pub(super) fn measure(
        &self,
        work: ImageWork,
        rounds: usize,
        interrupted: &AtomicBool,
    ) -> Result<ImageSamples> {
        let has_fio = fio_uses_images();
        let mut samples = ImageSamples::default();
        for round in 0..rounds {
            for client in ImageClient::list_in_order(work, has_fio, round) {
                let sample = self.run(client, work);
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
        let removed = rbd_command(cluster, &["rm", "--no-progress", &path]).output();
        if !removed.is_ok_and(|output| output.status.success()) {
            eprintln!("left behind: the image {path}");
        }
    }
}

/// Whether the installed fio has the engine rbd.
fn fio_uses_images() -> bool {
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

    fn work(name: &str) -> ImageWork {
        let mut kinds = ImageWork::list_kinds().into_iter();
        kinds.find(|work| work.name() == name).unwrap()
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
                fio: samples(80.0, 20.0),
            };
            let comparison = ImageComparison::compare(work("rbd randread 4k"), all, true);
            assert_eq!(comparison.is_good(), is_good, "{comparison:?}");
        }
    }

    #[test]
    fn cpu_time_beside_fio_has_a_bar_for_each_size() {
        for (name, cpu_us, is_good) in [
            ("rbd randread 4k", 7.9, true),
            ("rbd randwrite 4k", 8.1, false),
            ("rbd read 4M", 11.9, true),
            ("rbd write 4M", 12.1, false),
        ] {
            let all = ImageSamples {
                iosonde: samples(100.0, cpu_us),
                bare_client: Vec::new(),
                fio: samples(100.0, 10.0),
            };
            let comparison = ImageComparison::compare(work(name), all, true);
            assert_eq!(comparison.is_good(), is_good, "{comparison:?}");
        }
    }

    #[test]
    fn missing_fio_fails_all_but_the_smoke_run() {
        for with_bars in [true, false] {
            let all = ImageSamples {
                iosonde: samples(100.0, 10.0),
                ..ImageSamples::default()
            };
            let comparison = ImageComparison::compare(work("rbd write 4M"), all, with_bars);
            assert_eq!(comparison.is_good(), !with_bars);
            let text = comparison.text();
            assert!(text.contains("its bars are not measured"), "{text}");
        }
    }

    #[test]
    fn image_table_has_rows_and_ratios_of_all_clients() {
        let all = ImageSamples {
            iosonde: samples(100.0, 10.0),
            bare_client: samples(100.0, 8.0),
            fio: samples(50.0, 20.0),
        };
        let text = ImageComparison::compare(work("rbd randread 4k"), all, true).text();
        for words in [
            "  bare client      100.0 IOPS       8.00 us CPU/op\n",
            "  to bare    1.000 [1.000, 1.000], to be from 0.9 to 1.1: met\n",
            "  CPU/op     1.250 [1.250, 1.250], to be at most 1.15: MISSED\n",
            "  to fio     2.000 [2.000, 2.000], to be at least 1: met\n",
            "  CPU/op     0.500 [0.500, 0.500], to be at most 0.8: met\n",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn client_order_alternates_and_leaves_out_those_that_cannot() {
        use ImageClient::{Bare, Fio, Iosonde};
        let read = work("rbd randread 4k");
        let order = |round| ImageClient::list_in_order(read, true, round);
        assert_eq!(order(1), [Bare, Fio, Iosonde]);
        let is_first = |order: &Vec<ImageClient>| {
            let at = |client| order.iter().position(|each| *each == client);
            at(Iosonde) < at(Fio)
        };
        let orders: Vec<_> = (0..6).map(order).collect();
        assert_eq!(orders.iter().filter(|order| is_first(order)).count(), 3);
        let write = work("rbd randwrite 4k");
        assert_eq!(ImageClient::list_in_order(write, true, 1), [Fio, Iosonde]);
        assert_eq!(ImageClient::list_in_order(write, false, 3), [Iosonde]);
        assert!(has_engine("Available IO engines:\n\trados\n\trbd\n", "rbd"));
        assert!(!has_engine("Available IO engines:\n\trados\n", "rbd"));
    }
}
