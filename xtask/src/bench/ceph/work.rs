//! What both programs are asked to do, and what a run of one shows.

use super::super::program::run_alone;
use super::Cluster;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations in flight.
const CONCURRENT: &str = "16";
/// A run that makes objects for reads writes for so many times as long, so that reads in sequence do not end long before their time.
const TIMES_TO_READ: u32 = 3;

/// Who does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    RadosBench,
    Iosonde,
    /// No benchmark: the least that a client of librados can take.
    Bare,
}

impl Client {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Client::RadosBench => "rados bench",
            Client::Iosonde => "iosonde",
            Client::Bare => "bare client",
        }
    }
}

/// One kind of work, in the words of `rados bench`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    mode: &'static str,
    pub(super) op_bytes: u64,
    verifies: bool,
}

impl Work {
    /// All kinds; for a short run those that differ most.
    pub(super) fn all(few: bool) -> Vec<Work> {
        let reads = [
            ("seq", true),
            ("rand", true),
            ("seq", false),
            ("rand", false),
        ];
        let modes = std::iter::once(("write", false)).chain(reads);
        let sized = |op_bytes| {
            let is_wanted = |(mode, verifies): &(&str, bool)| !few || *mode == "write" || *verifies;
            modes
                .clone()
                .filter(is_wanted)
                .map(move |(mode, verifies)| Work {
                    mode,
                    op_bytes,
                    verifies,
                })
        };
        sized(4 << 10).chain(sized(4 << 20)).collect()
    }

    /// Its name in tables.
    pub(super) fn name(&self) -> String {
        let size = if self.is_small() { "4k" } else { "4M" };
        let verified = match (self.is_write(), self.verifies) {
            (true, _) => "",
            (false, true) => ", verified",
            (false, false) => ", not verified",
        };
        format!("{} {size}{verified}", self.mode)
    }

    pub(super) fn is_write(&self) -> bool {
        self.mode == "write"
    }

    fn is_small(&self) -> bool {
        self.op_bytes < 1 << 20
    }

    /// Who does it in a round, in this order. Who comes after whom changes: one finds the cluster as the other has left it.
    pub(super) fn clients(&self, round: usize) -> Vec<Client> {
        let mut clients = vec![Client::RadosBench, Client::Iosonde];
        if self.is_write() && self.is_small() {
            clients.push(Client::Bare);
        }
        let count = clients.len();
        if round / count % 2 == 1 {
            clients.reverse();
        }
        clients.rotate_left(round % count);
        clients
    }

    /// The most processor time of an operation, beside that of `rados bench`.
    pub(super) fn most_cpu(&self) -> f64 {
        if self.is_small() { 0.8 } else { 1.0 }
    }

    fn most_objects(&self, most_bytes: u64) -> String {
        format!("--max-objects={}", most_bytes / self.op_bytes)
    }

    fn words(&self, seconds: u32, most_bytes: u64) -> Vec<String> {
        let mut words = vec![
            "bench".to_owned(),
            seconds.to_string(),
            self.mode.to_owned(),
        ];
        words.extend(["-t", CONCURRENT, "-f", "json"].map(str::to_owned));
        if self.is_write() {
            words.extend(["-b".to_owned(), self.op_bytes.to_string()]);
            words.push("--no-cleanup".to_owned());
            words.push(self.most_objects(most_bytes));
        } else if !self.verifies {
            words.push("--no-verify".to_owned());
        }
        words
    }
}

/// What one run showed.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Sample {
    pub(super) ops_per_second: f64,
    /// Processor time of the process for an operation, in microseconds.
    pub(super) cpu_us: f64,
}

/// How programs are run.
pub(super) struct Runs<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) iosonde: PathBuf,
    pub(super) seconds: u32,
}

/// Objects that a client has left, removed with this.
pub(super) struct Objects<'a> {
    runs: &'a Runs<'a>,
    /// Under which benchmarks describe what they wrote.
    run_name: String,
    client: Client,
}

impl Objects<'_> {
    /// The option that says which they are, and its value.
    fn words(&self) -> [String; 2] {
        match self.client {
            // Nothing describes them. No benchmark's names begin so.
            Client::Bare => ["--prefix".to_owned(), self.prefix()],
            _ => ["--run-name".to_owned(), self.run_name.clone()],
        }
    }

    fn prefix(&self) -> String {
        format!("benchmark_data_{}_", self.run_name)
    }
}

impl Drop for Objects<'_> {
    fn drop(&mut self) {
        // Not Ceph's own: where nothing is described under this name, that removes what all benchmarks of this machine have written.
        let mut remove = self.runs.iosonde();
        remove.arg("cleanup").args(self.words());
        if !remove.output().is_ok_and(|output| output.status.success()) {
            eprintln!(
                "objects of {} may be left in {}",
                self.run_name, self.runs.cluster.pool
            );
        }
    }
}

fn rados(cluster: &Cluster, words: &[&str]) -> Command {
    let mut command = cluster.command(Path::new("rados"));
    command.args(["-p", &cluster.pool]).args(words);
    command
}

impl Runs<'_> {
    /// Objects of this work's size, for both to read.
    pub(super) fn objects(&self, work: &Work) -> Result<Objects<'_>> {
        let objects = self.named("read", Client::RadosBench);
        let write = Work {
            mode: "write",
            ..work.clone()
        };
        let mut command = rados(self.cluster, &[]);
        let seconds = self.seconds * TIMES_TO_READ;
        command.args(write.words(seconds, self.cluster.most_bytes));
        command.args(objects.words());
        run_alone(&mut command)?;
        Ok(objects)
    }

    fn named(&self, what: &str, client: Client) -> Objects<'_> {
        Objects {
            runs: self,
            run_name: format!("iosonde-bench-{what}-{}", std::process::id()),
            client,
        }
    }

    /// `iosonde rados` in the pool.
    fn iosonde(&self) -> Command {
        let mut command = self.cluster.command(&self.iosonde);
        command.args(["rados", "-p", &self.cluster.pool]);
        command
    }

    /// A client that does the work, on objects that are still to be named.
    fn command(&self, client: Client, work: &Work) -> Result<Command> {
        let pool = &self.cluster.pool;
        let mut command = match client {
            Client::RadosBench => rados(self.cluster, &[]),
            Client::Iosonde => self.iosonde(),
            Client::Bare => {
                let this = std::env::current_exe().context("finding this program")?;
                let mut command = self.cluster.command(&this);
                command.args(["bare-client", "--pool", pool, "--concurrent", CONCURRENT]);
                command.arg(format!("--op-bytes={}", work.op_bytes));
                command.arg(format!("--seconds={}", self.seconds));
                command.arg(work.most_objects(self.cluster.most_bytes));
                return Ok(command);
            }
        };
        command.args(work.words(self.seconds, self.cluster.most_bytes));
        Ok(command)
    }

    /// Does the work once: on given objects, or on new ones, which are removed.
    pub(super) fn run(
        &self,
        client: Client,
        work: &Work,
        given: Option<&Objects<'_>>,
    ) -> Result<Sample> {
        let new = given.is_none().then(|| self.named("write", client));
        let objects = given.or(new.as_ref()).context("there are no objects")?;
        let mut command = self.command(client, work)?;
        command.args(objects.words());
        let (text, cpu) = run_alone(&mut command)?;
        let (ops, seconds) =
            ops_and_seconds(&text).with_context(|| format!("what {command:?} printed"))?;
        Ok(Sample {
            ops_per_second: ops / seconds,
            cpu_us: (cpu.user_us + cpu.system_us) / ops,
        })
    }
}

/// Operations and how long they took, from the JSON of either. `rados bench` prints a line before it, and text for numbers.
fn ops_and_seconds(text: &str) -> Result<(f64, f64)> {
    let start = text.find('{').context("there is no JSON")?;
    let report: Value = serde_json::from_str(&text[start..])?;
    let number = |names: &[&str]| {
        let value = names.iter().find_map(|name| report.get(name));
        let value = value.with_context(|| format!("there is no {}", names.join(" or ")))?;
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        number.with_context(|| format!("{value} is no number"))
    };
    let ops = number(&["total_writes_made", "total_reads_made"])?;
    let seconds = number(&["total_time_run"])?;
    ensure!(ops > 0.0 && seconds > 0.0, "nothing was done");
    Ok((ops, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_of_both_are_read() {
        let theirs = "hints = 1\n{\"total_time_run\":\"2.5\",\"total_writes_made\":\"10\"}\n";
        let ours = "{\"total_time_run\":2.5,\"total_reads_made\":10}\n";
        for text in [theirs, ours] {
            assert_eq!(ops_and_seconds(text).unwrap(), (10.0, 2.5));
        }
        for bad in [
            "",
            "{}",
            "{\"total_time_run\":\"1\",\"total_reads_made\":\"0\"}",
        ] {
            assert!(ops_and_seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn all_orders_have_their_turn() {
        for work in [&Work::all(false)[0], &Work::all(false)[1]] {
            let count = work.clients(0).len();
            let orders = (0..2 * count).map(|round| work.clients(round));
            let before = |one: Client, other: Client| {
                let is_so = |order: &Vec<Client>| {
                    let at = |client| order.iter().position(|each| *each == client);
                    at(one) < at(other)
                };
                orders.clone().filter(is_so).count()
            };
            assert_eq!(before(Client::RadosBench, Client::Iosonde), count);
        }
        let mut small_writes: Vec<_> = (0..6)
            .map(|round| Work::all(false)[0].clients(round))
            .map(|order| order.into_iter().map(Client::name).collect::<Vec<_>>())
            .collect();
        small_writes.sort();
        small_writes.dedup();
        assert_eq!(small_writes.len(), 6);
    }

    #[test]
    fn reads_are_held_against_reads_that_verify_as_much() {
        let names: Vec<_> = Work::all(false).iter().map(Work::name).collect();
        assert_eq!(names.len(), 10);
        assert_eq!(names[4], "rand 4k, not verified");
        let unverified = &Work::all(false)[4];
        assert!(
            unverified
                .words(1, 1 << 30)
                .contains(&"--no-verify".to_owned())
        );
        assert_eq!(Work::all(true).len(), 6);
    }
}
