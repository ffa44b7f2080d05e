//! Work of the compared programs, and the figures of one run.

use super::super::program::run_alone;
use super::CephBenchCluster;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations in flight.
pub(super) const CONCURRENT: &str = "16";
/// Multiple of the run time for writing objects to read, so that `seq` does not run out of them.
const TIMES_TO_READ: u32 = 3;

/// The compared programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedClient {
    RadosBench,
    Iosonde,
    /// The bare client: the lower bound for a client of librados.
    Bare,
}

impl ComparedClient {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            ComparedClient::RadosBench => "rados bench",
            ComparedClient::Iosonde => "iosonde",
            ComparedClient::Bare => "bare client",
        }
    }
}

/// One kind of work, in the words of `rados bench`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RadosWork {
    mode: &'static str,
    pub(super) op_bytes: u64,
    verifies: bool,
}

impl RadosWork {
    /// All kinds; with `few`, those that differ most.
    pub(super) fn list_kinds(few: bool) -> Vec<RadosWork> {
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
                .map(move |(mode, verifies)| RadosWork {
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

    /// Clients of a round in order. The order varies, as each run changes the cluster's state.
    pub(super) fn clients(&self, round: usize) -> Vec<ComparedClient> {
        let mut clients = vec![ComparedClient::RadosBench, ComparedClient::Iosonde];
        if self.is_write() && self.is_small() {
            clients.push(ComparedClient::Bare);
        }
        let count = clients.len();
        if round / count % 2 == 1 {
            clients.reverse();
        }
        clients.rotate_left(round % count);
        clients
    }

    /// Largest allowed ratio of CPU time per operation, iosonde to `rados bench`.
    ///
    /// `rados bench` calls librados' C++ functions, which do not copy. The C functions copy each
    /// large write, and each large read that `rados bench` does not verify.
    pub(super) fn most_cpu(&self) -> f64 {
        match (self.is_small(), self.verifies) {
            (true, _) => 0.8,
            (false, true) => 1.0,
            (false, false) => 1.2,
        }
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

/// Figures of one run.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct RadosSample {
    pub(super) ops_per_second: f64,
    /// CPU time of the process per operation in microseconds.
    pub(super) cpu_us: f64,
}

/// Cluster, program and length of the runs.
pub(super) struct RadosRuns<'a> {
    pub(super) cluster: &'a CephBenchCluster,
    pub(super) iosonde: PathBuf,
    pub(super) seconds: u32,
}

/// Objects of a client, removed when dropped.
pub(super) struct Objects<'a> {
    runs: &'a RadosRuns<'a>,
    /// Name under which benchmarks store the description of their objects.
    run_name: String,
    client: ComparedClient,
}

impl Objects<'_> {
    /// The option that selects the objects, and its value.
    fn words(&self) -> [String; 2] {
        match self.client {
            // The bare client stores no description. No benchmark uses this prefix.
            ComparedClient::Bare => ["--prefix".to_owned(), self.prefix()],
            _ => ["--run-name".to_owned(), self.run_name.clone()],
        }
    }

    fn prefix(&self) -> String {
        format!("benchmark_data_{}_", self.run_name)
    }
}

impl Drop for Objects<'_> {
    fn drop(&mut self) {
        // `rados cleanup` without a description of this name removes all runs of this machine.
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

fn rados(cluster: &CephBenchCluster, words: &[&str]) -> Command {
    let mut command = cluster.command(Path::new("rados"));
    command.args(["-p", &cluster.pool]).args(words);
    command
}

impl RadosRuns<'_> {
    /// Writes objects of the work's size, which both programs read.
    pub(super) fn objects(&self, work: &RadosWork) -> Result<Objects<'_>> {
        let objects = self.named("read", ComparedClient::RadosBench);
        let write = RadosWork {
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

    fn named(&self, what: &str, client: ComparedClient) -> Objects<'_> {
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

    /// The command of a client for the work. The caller adds the names of objects.
    fn command(&self, client: ComparedClient, work: &RadosWork) -> Result<Command> {
        let pool = &self.cluster.pool;
        let mut command = match client {
            ComparedClient::RadosBench => rados(self.cluster, &[]),
            ComparedClient::Iosonde => self.iosonde(),
            ComparedClient::Bare => {
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

    /// Does the work once, on given objects or on new ones, which are removed.
    pub(super) fn run(
        &self,
        client: ComparedClient,
        work: &RadosWork,
        given: Option<&Objects<'_>>,
    ) -> Result<RadosSample> {
        let new = given.is_none().then(|| self.named("write", client));
        let objects = given.or(new.as_ref()).context("there are no objects")?;
        let mut command = self.command(client, work)?;
        command.args(objects.words());
        let (text, cpu) = run_alone(&mut command)?;
        let (ops, seconds) =
            ops_and_seconds(&text).with_context(|| format!("what {command:?} printed"))?;
        Ok(RadosSample {
            ops_per_second: ops / seconds,
            cpu_us: (cpu.user_us + cpu.system_us) / ops,
        })
    }
}

/// Operations and seconds from a program's JSON. `rados bench` prefixes a line and quotes numbers.
pub(super) fn ops_and_seconds(text: &str) -> Result<(f64, f64)> {
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
    fn reports_of_both_programs_are_parsed() {
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
    fn client_orders_rotate_through_all_permutations() {
        for work in [
            &RadosWork::list_kinds(false)[0],
            &RadosWork::list_kinds(false)[1],
        ] {
            let count = work.clients(0).len();
            let orders = (0..2 * count).map(|round| work.clients(round));
            let before = |one: ComparedClient, other: ComparedClient| {
                let is_so = |order: &Vec<ComparedClient>| {
                    let at = |client| order.iter().position(|each| *each == client);
                    at(one) < at(other)
                };
                orders.clone().filter(is_so).count()
            };
            assert_eq!(
                before(ComparedClient::RadosBench, ComparedClient::Iosonde),
                count
            );
        }
        let mut small_writes: Vec<_> = (0..6)
            .map(|round| RadosWork::list_kinds(false)[0].clients(round))
            .map(|order| {
                order
                    .into_iter()
                    .map(ComparedClient::name)
                    .collect::<Vec<_>>()
            })
            .collect();
        small_writes.sort();
        small_writes.dedup();
        assert_eq!(small_writes.len(), 6);
    }

    #[test]
    fn reads_are_compared_with_equal_verification() {
        let names: Vec<_> = RadosWork::list_kinds(false)
            .iter()
            .map(RadosWork::name)
            .collect();
        assert_eq!(names.len(), 10);
        assert_eq!(names[4], "rand 4k, not verified");
        let unverified = &RadosWork::list_kinds(false)[4];
        assert!(
            unverified
                .words(1, 1 << 30)
                .contains(&"--no-verify".to_owned())
        );
        assert_eq!(RadosWork::list_kinds(true).len(), 6);
    }
}
