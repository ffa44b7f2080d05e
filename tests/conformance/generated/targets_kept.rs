//! Jobs with any options, and with values that name other places, on a given target: no other file
//! may be opened for writing, and no program may start.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, thread};

use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::scratch::incompressible;
use iosonde_e2e::{Scratch, is_full, ours, require, system_calls};
use iosonde_job::options;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::values::{draw_value, is_drawable, pick};

const SEED: u64 = 0x0007_a26e_75e0_0001;
/// Runs at once, since some jobs wait for their time limit.
const JOBS_AT_ONCE: usize = 4;
/// Time limit of a run, because some jobs never end.
const TIMEOUT_S: &str = "20";
/// System calls that start a program, open a file, or change names and lengths.
const TRACED: &str = "trace=execve,openat,open,creat,truncate,unlink,unlinkat,rename,renameat,\
                      renameat2,mkdir,mkdirat,symlink,symlinkat,link,linkat";

/// Values that name other places; OUT is a directory outside of the target.
const LEADING: &[(&str, &[&str])] = &[
    (
        "filename",
        &["OUT/victim", "../victim", "rbd\\://p/i", "rados\\://p/x"],
    ),
    (
        "filename_format",
        &[
            "rbd://p/i",
            "rados://p/x",
            "OUT/victim",
            "../../out/$jobname",
        ],
    ),
    ("directory", &["OUT", "..", "/"]),
    ("opendir", &["OUT", ".."]),
    ("mem", &["mmap:OUT/buffers", "mmaphuge:OUT/buffers"]),
    ("write_iolog", &["OUT/victim", "../victim"]),
    ("write_bw_log", &["OUT/log", "../log"]),
    ("write_lat_log", &["OUT/log", ""]),
    ("exec_prerun", &["touch OUT/run"]),
    ("exec_postrun", &["touch OUT/run"]),
    ("ioscheduler", &["none"]),
    ("read_iolog", &["OUT/trace"]),
    ("replay_redirect", &["OUT/victim"]),
    ("ioengine", &["rbd", "rados", "sim"]),
    ("pool", &["p"]),
    ("rbdname", &["i"]),
    ("conf", &["OUT/victim"]),
    ("name", &["../../out/victim"]),
    ("allow_mounted_write", &["1"]),
];

fn draw_job(number: u64, out: &Path) -> String {
    let mut random =
        Xoshiro256PlusPlus::seed_from_u64(SEED ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut lines = vec![
        "[a]".to_owned(),
        "rw=write".to_owned(),
        "size=64k".to_owned(),
    ];
    let table: Vec<_> = options::list_options()
        .filter(|row| is_drawable(row, "psync"))
        .collect();
    for _ in 0..random.random_range(0..4) {
        let row = pick(&table, &mut random);
        lines.push(match draw_value(row, &mut random) {
            Some(value) => format!("{}={value}", row.name),
            None => row.name.to_owned(),
        });
    }
    for _ in 0..random.random_range(1..3) {
        let (name, values) = pick(LEADING, &mut random);
        let value = pick(values, &mut random).replace("OUT", &out.display().to_string());
        lines.push(format!("{name}={value}"));
    }
    // Ends jobs with any drawn options.
    lines.push("runtime=1".to_owned());
    lines.join("\n") + "\n"
}

/// The path or program of a strace line that changes or starts it.
fn changed(line: &str) -> Option<PathBuf> {
    let is_failed = line.contains(") = -1 ") || line.contains("= ? ");
    let (call, arguments) = line.split_once('(')?;
    let call = call.rsplit(' ').next()?;
    let opens = ["openat", "open", "creat"].contains(&call);
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"];
    if is_failed || opens && call != "creat" && !writes.iter().any(|flag| line.contains(flag)) {
        return None;
    }
    // With `-y` a descriptor is followed by its path.
    if opens
        && let Some((_, path)) = line
            .rsplit_once("= ")
            .and_then(|(_, end)| end.split_once('<'))
    {
        return Some(path.trim_end().trim_end_matches('>').into());
    }
    let quoted: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
    let path = match call {
        "execve" => quoted.first()?,
        _ => quoted.last()?,
    };
    let directory = arguments
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    Some(match directory {
        Some((directory, _)) if call != "execve" => Path::new(directory).join(path),
        _ => path.into(),
    })
}

/// Exit status of a run, and its changes outside of the target.
fn outside(number: u64, is_sweep: bool) -> (Option<i32>, Vec<PathBuf>, String) {
    let scratch = Scratch::shared();
    let work = scratch.work();
    for directory in ["target", "out"] {
        fs::create_dir(work.join(directory)).expect("a directory");
    }
    let out = work.join("out");
    scratch.write("file", incompressible(16 << 20, 1));
    fs::write(out.join("victim"), "mine").expect("a foreign file");
    let trace = "fio version 2 iolog\nvictim add\nvictim open\nvictim write 0 4096\nvictim close\n";
    fs::write(out.join("trace"), trace).expect("a trace");
    let job = draw_job(number, &out);
    scratch.write("job.fio", &job);
    scratch.write(
        "suite.toml",
        "[[workload]]\nname = \"w\"\nfile = \"job.fio\"\n",
    );
    let target = if number.is_multiple_of(2) {
        "target"
    } else {
        "file"
    };
    let command = match is_sweep {
        true => format!("sweep job.fio {target} --iodepth 1 --runtime 1 --exhaustive"),
        false => format!("run suite.toml {target}"),
    };
    let calls = scratch.out().join("calls");
    let words = ["timeout", "--kill-after=5", TIMEOUT_S].map(Into::into);
    let words: Vec<_> = words.into_iter().chain([iosonde().into()]).collect();
    let run = Invocation::new(&scratch, words)
        .and(&command)
        .and("--logs logs --allow-overwrite file")
        .traced(TRACED, &calls)
        .run();
    let own = ["target", "file", "logs"].map(|name| work.join(name));
    let own = [&own[..], &[scratch.state()]].concat();
    let is_own = |path: &PathBuf| {
        let program = [Path::new(iosonde()), Path::new("/dev/null")].contains(&path.as_path());
        let is_timeout = path.ends_with("timeout");
        let is_kernels = ["/proc/self", "/dev/tty"]
            .iter()
            .any(|own| path.starts_with(own));
        program || is_timeout || is_kernels || own.iter().any(|own| path.starts_with(own))
    };
    let changed = system_calls(&calls)
        .iter()
        .filter_map(|call| changed(call))
        .filter(|path| !is_own(path))
        .collect();
    let intact = fs::read(out.join("victim")).ok().as_deref() == Some(b"mine");
    assert!(intact, "{number}: {command}\n{job}\n{run}");
    (
        run.status.code(),
        changed,
        format!("{command}\n{job}\n{run}"),
    )
}

#[test]
fn drawn_jobs_change_only_their_target() {
    require!(Strace);
    ours!();
    let count = if is_full() { 400 } else { 40 };
    let next = AtomicU64::new(0);
    let run_jobs = || {
        let mut statuses = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return statuses;
            }
            let (status, changed, said) = outside(number, number % 8 >= 6);
            assert!(changed.is_empty(), "{number} changed {changed:?}: {said}");
            statuses.push(status);
        }
    };
    let statuses: Vec<Option<i32>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..JOBS_AT_ONCE).map(|_| scope.spawn(run_jobs)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("each job kept to its target"))
            .collect()
    });
    let count_statuses = |wanted: &[i32]| {
        let is_wanted = |status: &&Option<i32>| status.is_some_and(|code| wanted.contains(&code));
        statuses.iter().filter(is_wanted).count() as u64
    };
    let (done, refused) = (count_statuses(&[0]), count_statuses(&[2, 3]));
    // Both outcomes must occur, or the test proves nothing.
    assert!(
        done > count / 10 && refused > count / 10,
        "{done} done, {refused} refused"
    );
}
