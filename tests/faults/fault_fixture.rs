//! Hits a command and asks three questions: are all bytes that iosonde does not own unchanged, is
//! nothing left, and do exit status and error name cause and remedy, or is the work resumed?

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use iosonde_e2e::program::{Invocation, Running, iosonde};
use iosonde_e2e::scratch::incompressible;
use iosonde_e2e::{Run, Scratch};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::Signal;

use crate::table::{Cell, Subcommand};

/// Result of a hit; an error names the question with the wrong answer.
pub(crate) type Outcome = Result<(), String>;

/// Maximum number of hits in place of one that came too late.
const HITS_IN_TIME_MAX: u32 = 4;

/// A file that `fio` keeps on purpose, as fio does.
const LEFT_BY_FIO: &str = "job.0.0";

const SUITE: &str = "\
    [[workload]]\n\
    name = \"reads\"\n\
    options = { rw = \"randread\", bs = \"4k\", size = \"16m\", runtime = 1, time_based = 1 }\n\
    [[workload]]\n\
    name = \"reads64k\"\n\
    options = { rw = \"randread\", bs = \"64k\", size = \"16m\", runtime = 1, time_based = 1 }\n";

/// A directory with foreign files, a target, and a history with a foreign result.
pub(crate) struct FaultFixture {
    pub(crate) scratch: Scratch,
    theirs: BTreeMap<PathBuf, Vec<u8>>,
}

impl FaultFixture {
    pub(crate) fn new() -> FaultFixture {
        let scratch = Scratch::shared();
        let work = scratch.work();
        for directory in [work.join("target"), scratch.out().join("tmp")] {
            fs::create_dir(directory).expect("a directory");
        }
        scratch.write("suite.toml", SUITE);
        scratch.write("target/theirs", incompressible(1 << 20, 3));
        scratch.write("neighbour", incompressible(64 << 10, 4));
        let theirs = ["suite.toml", "target/theirs", "neighbour"].map(|name| work.join(name));
        let theirs = theirs.map(|path| (path.clone(), fs::read(path).expect("a file")));
        let fixture = FaultFixture {
            theirs: theirs.into(),
            scratch,
        };
        fixture.copy_history();
        fixture
    }

    /// Creates a history with one result, which is measured once per process.
    fn copy_history(&self) {
        static HISTORY: OnceLock<Vec<u8>> = OnceLock::new();
        let path = self.history();
        let earlier = || {
            let line = "load sim:read_us=100 --rates 100 --runtime 1 --label of=another";
            let _ = self.iosonde(line).ok();
            fs::read(&path).expect("a history")
        };
        let bytes = HISTORY.get_or_init(earlier);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, bytes).expect("a history");
    }

    /// A word that is unique among all fixtures of this machine.
    pub(crate) fn id(&self) -> String {
        let out = self.scratch.out();
        let name = out.parent().and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy()
            .replace("iosonde-e2e-", "")
            .to_lowercase()
    }

    /// The path of this fixture's history.
    pub(crate) fn history(&self) -> PathBuf {
        self.scratch.state().join("iosonde/history.db")
    }

    /// Runs iosonde in this directory.
    pub(crate) fn iosonde(&self, line: &str) -> Invocation {
        Invocation::new(&self.scratch, vec![iosonde().into()])
            .and(line)
            .env("TMPDIR", self.scratch.out().join("tmp"))
    }

    /// A command on a target where it creates a working file, or which it may overwrite.
    pub(crate) fn command(&self, cell: Cell, target: &str, words: &str) -> Invocation {
        let rest = match cell.subcommand {
            Subcommand::Fio => {
                let place = match fs::metadata(self.scratch.work().join(target)) {
                    Ok(found) if !found.is_dir() => format!("--filename={target}"),
                    Ok(_) => format!("--directory={target}"),
                    Err(_) => format!("--target={target}"),
                };
                format!(
                    "{place} --name=job --rw=randread --bs=4k --size=16m --runtime=2 --time_based"
                )
            }
            Subcommand::FioForHours => {
                "--name=job --ioengine=sim --rw=randread --bs=4k --size=1g --rate_iops=20 \
                 --runtime=6h --time_based"
                    .to_owned()
            }
            Subcommand::Probe => format!("{target} --quick --size 16m --runtime 1"),
            Subcommand::Sweep => {
                format!(
                    "{target} --rw randread --bs 4k,64k --iodepth 1,4 --size 16m --runtime 1 \
                     --exhaustive"
                )
            }
            Subcommand::Load => format!("{target} --rates 200,400 --size 16m --runtime 1"),
            Subcommand::Pts => {
                format!("throughput {target} --size 16m --time-scale 0.001 --rounds 5")
            }
            Subcommand::Run => format!("suite.toml {target}"),
        };
        let name = cell.subcommand.name();
        let name = name.split(' ').next().unwrap_or(name);
        self.iosonde(&format!("{name} {rest} {words}"))
    }

    /// Starts the command and waits until a random time within its usual duration.
    pub(crate) fn until_random_point(
        &self,
        start: impl Fn() -> Invocation,
        cell: Cell,
        number: u32,
    ) -> Running {
        let mut share = Xoshiro256PlusPlus::seed_from_u64(u64::from(number)).random_range(0.0..1.0);
        let tenth = f64::from(number % 10);
        share = (tenth + share) / 10.0;
        let longest = if cell.subcommand.is_long() { 9.0 } else { 2.5 };
        loop {
            let mut running = start().start();
            std::thread::sleep(Duration::from_secs_f64(longest * share));
            if running.is_running() {
                return running;
            }
            // The command ended before the hit: the next wait is shorter.
            let ended = running.wait();
            assert!(ended.status.success(), "{ended}");
            share *= 0.6;
        }
    }

    /// The first question, for foreign files.
    pub(crate) fn is_unchanged(&self) -> Outcome {
        for (path, before) in &self.theirs {
            let now = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            if now != *before {
                return Err(format!("{} was changed", path.display()));
            }
        }
        Ok(())
    }

    /// Whether the history still has the foreign result.
    pub(crate) fn is_history_whole(&self) -> Outcome {
        let list = self.iosonde("list").run();
        match list.status.success() && list.stdout.contains("of=another") {
            true => Ok(()),
            false => Err(format!("the history lost an earlier result: {list}")),
        }
    }

    /// The second question; `also` names files that the fault itself creates.
    pub(crate) fn is_nothing_left(&self, also: &[&str]) -> Outcome {
        self.are_processes_gone()?;
        let work = self.scratch.work();
        let is_theirs = |name: &str| {
            self.theirs.contains_key(&work.join(name))
                || also.contains(&name)
                || Path::new(name)
                    .file_name()
                    .is_some_and(|name| name == LEFT_BY_FIO)
        };
        let mut left: Vec<_> = self.scratch.files();
        left.retain(|name| !is_theirs(name));
        let temporary = fs::read_dir(self.scratch.out().join("tmp")).expect("a directory");
        left.extend(
            temporary
                .flatten()
                .map(|entry| entry.path().display().to_string()),
        );
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("left: {}", left.join(", "))),
        }
    }

    /// Checks that no other process has this working directory.
    fn are_processes_gone(&self) -> Outcome {
        let work = self.scratch.work();
        let mut there = Vec::new();
        for _ in 0..500 {
            let processes = fs::read_dir("/proc").expect("/proc").flatten();
            there = processes
                .filter(|process| {
                    fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == work)
                })
                .map(|process| fs::read_to_string(process.path().join("comm")).unwrap_or_default())
                .filter(|name| name.starts_with("iosonde"))
                .collect::<Vec<_>>();
            if there.is_empty() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("still runs: {}", there.concat()))
    }

    /// Whether a journal has a result after its header.
    pub(crate) fn has_result(&self) -> bool {
        let state = self.scratch.state().join("iosonde");
        let journals = ["sweeps", "suites"].map(|name| state.join(name));
        let files = journals.iter().flat_map(fs::read_dir).flatten().flatten();
        let mut texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.any(|text| {
            let results = text.lines().skip(1);
            results
                .into_iter()
                .any(|line| !line.contains("\"outcome\":null"))
        })
    }

    /// The third question for interrupted work: it is resumed or repeated, which removes leftovers.
    pub(crate) fn is_taken_up(&self, cell: Cell, again: impl Fn(&str) -> Invocation) -> Outcome {
        if cell.subcommand.is_resumed() {
            let has_result = self.has_result();
            let resumed = again("--resume").run();
            if resumed.status.success() {
                return Ok(());
            }
            if has_result || !resumed.stderr.contains("no stopped") {
                return Err(format!("is not resumed: {resumed}"));
            }
        }
        let repeated = again("").run();
        match repeated.status.success() {
            true => Ok(()),
            false => Err(format!("cannot be done again: {repeated}")),
        }
    }
}

/// The third question for a failed command: an expected exit status, and an error with an expected
/// cause and a remedy, on its own line or after the cause. An interrupt needs no remedy.
pub(crate) fn is_explained(run: &Run, statuses: &[i32], causes: &[&str]) -> Outcome {
    let status = run.status.code();
    if status.is_none_or(|status| !statuses.contains(&status)) {
        return Err(format!("the status is none of {statuses:?}: {run}"));
    }
    if status == Some(0) {
        return Ok(());
    }
    let errors = run.stderr.split_once("error: ");
    let (_, error) = errors.ok_or_else(|| format!("has no error: {run}"))?;
    let names_cause = causes.iter().any(|cause| error.contains(cause));
    let remedies = ["help: ", "; see ", "findmnt"];
    let is_asked_for = status.is_some_and(|status| status > 128);
    let has_remedy = is_asked_for || remedies.iter().any(|word| error.contains(word));
    match names_cause && has_remedy && !run.stderr.contains("panicked") {
        true => Ok(()),
        false => Err(format!(
            "does not name cause and remedy ({causes:?}): {run}"
        )),
    }
}

/// Repeats a hit that returns `None`: the command had ended before the fault. On a busy machine
/// that happens between the look at the command and the fault.
pub(crate) fn hit_in_time(mut hit: impl FnMut() -> Option<Outcome>) -> Outcome {
    let outcome = (0..HITS_IN_TIME_MAX).find_map(|_| hit());
    outcome.unwrap_or_else(|| Err("always ends successfully before the fault".to_owned()))
}

/// Whether a signal killed the command before its handler existed; then no output exists.
pub(crate) fn died_at_once(run: &Run, signal: Signal) -> bool {
    run.status.signal() == Some(signal.as_raw()) && run.stdout.is_empty() && run.stderr.is_empty()
}
