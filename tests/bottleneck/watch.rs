//! `iosonde watch` beside sysstat's sar, in the same seconds.

use std::collections::BTreeMap;
use std::ffi::OsString;

use iosonde_e2e::device::Loop;
use iosonde_e2e::mount::Mount;
use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, ours, require};
use rustix::process::Signal;

const MIB: usize = 1 << 20;

/// The columns of each line about a device; the last line holds the averages.
fn figures(text: &str, separator: Option<char>, device: &str) -> Vec<Vec<f64>> {
    let split = |line: &str| -> Vec<String> {
        match separator {
            Some(separator) => line.split(separator).map(str::to_owned).collect(),
            None => line.split_whitespace().map(str::to_owned).collect(),
        }
    };
    text.lines()
        .map(split)
        .filter(|words| words.get(1).is_some_and(|word| word == device))
        .map(|words| {
            words[2..]
                .iter()
                .map(|word| word.parse().expect("a figure"))
                .collect()
        })
        .collect()
}

/// A constant load, so that the exact edges of intervals do not matter.
fn load(scratch: &Scratch, disk: &Loop) -> Invocation {
    Program::Fio.line(
        scratch,
        &format!(
            "--filename={} --direct=1 --thread --time_based --runtime=600 --ioengine=libaio \
             --iodepth=2 --name=reads --rw=randread --bs=16k --rate_iops=400 --name=writes \
             --rw=randwrite --bs=4k --rate_iops=200",
            disk.path().display()
        ),
    )
}

fn watch(scratch: &Scratch, line: &str) -> Invocation {
    Invocation::new(scratch, vec![iosonde().into(), "watch".into()]).and(line)
}

#[test]
fn watch_figures_equal_those_of_sar() {
    require!(Root, Sar);
    ours!();
    let scratch = Scratch::calm();
    let memory = Mount::tmpfs(scratch.work().join("memory"), 128 * MIB as u64);
    let disk = Loop::in_memory(&memory, 64 * MIB);
    let name = disk
        .path()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let load = load(&scratch, &disk).urgent().start();
    std::thread::sleep(std::time::Duration::from_secs(1));
    // A delayed start of either program shifts its seconds against the other's.
    one_good_try(|| {
        let sar: Vec<OsString> = ["sar", "-d", "1", "4"].map(OsString::from).into();
        let sar = Invocation::new(&scratch, sar).env("LC_ALL", "C").urgent();
        let ours = watch(&scratch, &format!("--format csv {name} 1 4")).urgent();
        let (sar, ours) = (sar.start(), ours.start());
        let (sar, ours) = (sar.wait(), ours.wait());
        let theirs = figures(&sar.stdout, None, &name);
        let figures = figures(&ours.stdout, Some(','), &name);
        assert_eq!((theirs.len(), figures.len()), (5, 5), "{sar}{ours}");
        same_figures(&theirs[4], &figures[4]).map_err(|why| format!("{why}\n{sar}{ours}"))
    });
    drop(load);
}

/// Checks the averages of both programs against each other and against the load.
fn same_figures(theirs: &[f64], mine: &[f64]) -> Result<(), String> {
    // Tolerances: sar rounds an interval's length to 10 ms, and the edges differ by milliseconds.
    let tolerances = [
        ("tps", 0.05, 5.0),
        ("rkB/s", 0.05, 80.0),
        ("wkB/s", 0.05, 20.0),
        ("dkB/s", 0.05, 1.0),
        ("areq-sz", 0.02, 0.1),
        ("aqu-sz", 0.25, 0.05),
        ("await", 0.25, 0.05),
        ("%util", 0.25, 3.0),
    ];
    for (index, (column, share, least)) in tolerances.into_iter().enumerate() {
        let (theirs, mine) = (theirs[index], mine[index]);
        ensure((mine - theirs).abs() <= (theirs * share).max(least), || {
            format!("{column}: {mine}, and sar says {theirs}")
        })?;
    }
    let tps = mine[0];
    ensure((500.0..700.0).contains(&tps), || {
        format!("the load was {tps} requests/s")
    })
}

#[test]
fn watch_without_device_shows_those_of_sar() {
    require!(Sar);
    ours!();
    let scratch = Scratch::alone();
    let names = |text: &str| -> BTreeMap<String, usize> {
        let mut names = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.len() == 10 {
                *names.entry(words[1].to_owned()).or_default() += 1;
            }
        }
        names
    };
    // Other programs may add or remove devices meanwhile.
    one_good_try(|| {
        let sar: Vec<OsString> = ["sar", "-d", "1", "1"].map(OsString::from).into();
        let sar = Invocation::new(&scratch, sar).env("LC_ALL", "C");
        let (sar, ours) = (sar.start(), watch(&scratch, "1 1").start());
        let (sar, ours) = (sar.wait(), ours.wait());
        assert!(sar.status.success() && ours.status.success(), "{sar}{ours}");
        // Each name appears twice, in the interval and in the averages, as the column headers do.
        ensure(names(&ours.stdout) == names(&sar.stdout), || {
            format!("{sar}{ours}")
        })
    });
}

#[test]
fn ctrl_c_ends_watch_with_averages() {
    require!(Root);
    ours!();
    let scratch = Scratch::shared();
    let disk = Loop::with_file(&scratch.work().join("disk"), MIB);
    let line = format!("{} 0.2", disk.path().display());
    let mut running = watch(&scratch, &line).start();
    assert!(running.until(|running| running.stdout_text().lines().count() > 5));
    running.signal(Signal::INT);
    let run = running.wait();
    assert!(run.status.success(), "{run}");
    assert!(
        run.stdout.lines().last().unwrap().starts_with("Average:"),
        "{run}"
    );
    let refused = watch(&scratch, "no-such-disk").run();
    refused.refused_with(&[
        "no-such-disk is neither a block device nor a path on one",
        "lsblk",
    ]);
}
