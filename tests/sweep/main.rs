//! `iosonde sweep` on directories and on devices with known plateaus, interrupted and resumed.

mod exhaustive;
mod page_cache_size;
mod pts;
mod quiet;
mod suite;
mod sweep_faults;

use std::fs;
use std::path::Path;
use std::process::Command;

use iosonde_e2e::device::{Loop, Zram};
use iosonde_e2e::need::fio_plot;
use iosonde_e2e::program::{Invocation, Run, iosonde};
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::throttle::Throttle;
use iosonde_e2e::{Scratch, ensure, one_good_try, require};
use rustix::process::Signal;
use serde_json::Value;

const MIB: usize = 1 << 20;

/// A run of iosonde in the scratch directory, with history and journals outside of it.
fn run(scratch: &Scratch, line: &str) -> Invocation {
    Invocation::new(scratch, vec![iosonde().into()])
        .and(line)
        .env("IOSONDE_STORE", scratch.out().join("history.db"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn directory_is_swept_and_unchanged() {
    let scratch = Scratch::shared();
    scratch.write("mine.txt", "not yours");
    let line = "sweep . --size 32m --rw randread,write --bs 4k,64k --iodepth 1..4 --runtime 5 \
                --details --export-fio";
    let out = scratch.out().join("fio");
    let run = run(&scratch, &format!("{line} {}", out.display())).ok();
    for words in ["randread", "write", "iB/s", "depth"] {
        assert!(
            run.stdout.contains(words),
            "does not print {words:?}: {run}"
        );
    }
    let (_, advice) = run.stdout.split_once("Advice\n").expect("advice");
    for curve in ["randread 4k", "randread 64k", "write 4k", "write 64k"] {
        let has_advice = advice.lines().any(|line| line.starts_with(curve));
        assert!(has_advice, "no word on {curve:?}: {run}");
    }
    assert!(
        run.stdout.lines().all(|line| line.chars().count() <= 80),
        "{run}"
    );
    assert_eq!(scratch.files(), ["mine.txt"]);
    let directory = fs::read_dir(&out)
        .expect("files")
        .next()
        .expect("a target")
        .expect("it")
        .path();
    // A shared disk may complete no I/O during a short first cell.
    let cells = ["1", "2", "4"].map(|depth| directory.join(format!("4k/randread-{depth}-1.json")));
    let text = cells.iter().find_map(|cell| fs::read_to_string(cell).ok());
    let iops = json(&text.expect("a cell"))["jobs"][0]["read"]["iops"].as_f64();
    assert!(iops > Some(0.0), "{iops:?}");
}

/// fio-plot draws its charts from exported JSON and logs.
#[test]
#[ignore = "long: fio-plot is installed by ./test --full"]
fn fio_plot_reads_exported_sweep() {
    require!(FioPlot);
    let scratch = Scratch::shared();
    let out = scratch.out().join("fio");
    let line = "sweep . --size 32m --rw randread,randwrite --bs 4k --iodepth 1,4 --numjobs 1,2 \
                --runtime 3 --exhaustive";
    let _ = run(&scratch, &format!("{line} --export-fio {}", out.display())).ok();
    let target = fs::read_dir(&out).expect("files").next().expect("a target");
    let cells = target.expect("it").path().join("4k");
    let graphs = [
        ("3d", "-r randread -t iops -L -d 1 4 -n 1 2"),
        ("bars", "-r randwrite -l -d 1 4 -n 1"),
        ("histogram", "-r randread -H -d 4 -n 2"),
        ("lines", "-r randread -g -t bw iops lat -d 4 -n 2"),
    ];
    for (name, words) in graphs {
        let picture = scratch.out().join(format!("{name}.png"));
        let plotted = Command::new(fio_plot())
            .args(["-i", &cells.display().to_string(), "-T", name])
            .args(["-o", &picture.display().to_string()])
            .args(words.split(' '))
            .output()
            .expect("fio-plot starts");
        let output = String::from_utf8_lossy(&plotted.stdout).into_owned()
            + &String::from_utf8_lossy(&plotted.stderr);
        assert!(plotted.status.success(), "{name}: {output}");
        let bytes = fs::read(&picture).unwrap_or_else(|error| panic!("{name}: {error}: {output}"));
        assert!(
            bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000,
            "{name}: {output}"
        );
    }
}

/// Each target has its own curves over the same cells, and all files are unchanged.
#[test]
fn targets_form_an_axis() {
    let scratch = Scratch::shared();
    for name in ["a", "b"] {
        fs::create_dir(scratch.work().join(name)).expect("a target");
        scratch.write(&format!("{name}/mine.txt"), "not yours");
    }
    let line = "sweep a b --size 32m --rw randread,randwrite --bs 4k --runtime 1 --exhaustive";
    let run_in = |options: &str| run(&scratch, &format!("{line} {options}")).ok();
    let names = ["a", "b"].map(|name| scratch.work().join(name).display().to_string());
    one_good_try(|| {
        let swept = run_in("--iodepth 1,4 --format json");
        let sweep = &json(&swept.stdout)["sweep"];
        let texts = |list: &Value| -> Vec<String> {
            let list = list.as_array().expect("a list").iter();
            list.filter_map(|text| text.as_str().map(str::to_owned))
                .collect()
        };
        assert_eq!(texts(&sweep["targets"]), names);
        assert_eq!(sweep["axes"][0]["name"], "target", "{swept}");
        assert_eq!(texts(&sweep["axes"][0]["values"]), names);
        let curves = sweep["curves"].as_array().expect("curves");
        let labels: Vec<Vec<String>> = curves.iter().map(|curve| texts(&curve["values"])).collect();
        let expected: Vec<[&str; 2]> = names
            .iter()
            .flat_map(|name| ["randread", "randwrite"].map(|rw| [name.as_str(), rw]))
            .collect();
        assert!(
            labels
                .iter()
                .zip(&expected)
                .all(|(labels, expected)| labels[..2] == expected[..]),
            "{labels:?}"
        );
        for curve in curves {
            // A shared disk may complete no I/O during a cell.
            ensure(curve["state"] == "complete", || format!("{swept}"))?;
            let cells = curve["cells"].as_array().expect("cells");
            assert!(
                cells
                    .iter()
                    .all(|cell| cell["basis"] == "measured"
                        && cell["iops"]["mean"].as_f64() > Some(0.0)),
                "{curve}"
            );
            ensure(cells.len() == 2, || format!("{curve}"))?;
        }
        Ok(())
    });
    one_good_try(|| {
        let csv = run_in("--iodepth 1 --format csv").stdout;
        names.iter().try_for_each(|name| {
            let lines = csv.lines().filter(|line| line.contains(name));
            ensure(lines.count() == 2, || csv.clone())
        })
    });
    assert_eq!(scratch.files(), ["a/mine.txt", "b/mine.txt"]);
}

#[test]
fn job_file_is_swept_over_given_axes() {
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 8 * MIB);
    let job = "[global]\nfilename=data\nsize=8m\ndirect=1\nioengine=libaio\n[small]\nrw=randread\n\
               bs=4k\n[large]\nstonewall\nrw=read\nbs=64k\n";
    scratch.write("job.fio", job);
    let run = run(
        &scratch,
        "sweep job.fio --iodepth 1,2 --runtime 2 --exhaustive --format json",
    )
    .ok();
    let document = json(&run.stdout);
    let curves = document["sweep"]["curves"].as_array().expect("curves");
    let names: Vec<&str> = curves
        .iter()
        .filter_map(|curve| curve["values"][0].as_str())
        .collect();
    assert_eq!(names, ["small", "large"]);
    assert!(is_complete(&run.stdout), "{run}");
    assert_eq!(scratch.files(), ["data", "job.fio"]);
}

/// The plateau of a throttled device is found within 2 %.
#[test]
fn plateau_of_throttled_device_is_found() {
    require!(Root, Zram, Throttle);
    let scratch = Scratch::calm();
    let disk = Zram::new(64 * MIB);
    let throttle = Throttle::of_reads(&disk.path(), 500);
    let line = format!(
        "sweep {} --bs 4k --iodepth 1..16 --runtime 20 --format json",
        disk.path().display()
    );
    one_good_try(|| {
        let run = run(&scratch, &line).throttled(&throttle).urgent().ok();
        let document = json(&run.stdout);
        let saturation = &document["sweep"]["curves"][0]["saturation"];
        let maximum = saturation["maximum"]["mean"].as_f64().expect("a maximum");
        let knee = &saturation["knee"]["iodepth"];
        ensure((maximum / 500.0 - 1.0).abs() <= 0.02 && knee == 1, || {
            format!("{maximum}, reached at depth {knee}, where 500 is the cap")
        })
    });
}

/// Whether a directory has a journal with a result, after the header and markers of suite steps.
fn holds_something(dir: &Path) -> bool {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files
        .filter_map(|file| fs::read_to_string(file.path()).ok())
        .any(|text| {
            let mut results = text.lines().skip(1);
            results.any(|line| !line.contains("\"outcome\":null"))
        })
}

/// Whether each curve of a sweep is complete, unless a shared disk completed no I/O in a cell.
fn is_complete(text: &str) -> bool {
    let document = json(text);
    let sweep = &document["sweep"];
    let curves = sweep["curves"].as_array().expect("curves");
    let is_still = (sweep["notes"].to_string()).contains("no I/O completed");
    let is_at_its_end = |curve: &Value| curve["state"] == "complete" || is_still;
    !curves.is_empty() && curves.iter().all(is_at_its_end)
}

/// Starts a sweep, stops it by a signal after its first result, and waits for the exit. `Err`: a
/// busy machine sent the signal after the end.
fn stopped_sweep(scratch: &Scratch, line: &str, signal: Signal) -> Result<Run, String> {
    let mut running = run(scratch, line).start();
    let journals = scratch.out().join("sweeps");
    let has_measured = running.until(|_| holds_something(&journals));
    if has_measured {
        running.signal(signal);
    }
    let stopped = running.wait();
    ensure(has_measured && !stopped.status.success(), || {
        stopped.to_string()
    })?;
    Ok(stopped)
}

/// A sweep of a file that was interrupted after its first result.
fn interrupted_sweep(line: &str) -> (Scratch, Run) {
    let mut found = None;
    one_good_try(|| {
        // Another directory for each try: a complete sweep leaves its results. A test holds one.
        found = None;
        let scratch = Scratch::shared();
        lay_out(&scratch.work().join("data"), 32 * MIB);
        let stopped = stopped_sweep(&scratch, line, Signal::INT)?;
        found = Some((scratch, stopped));
        Ok(())
    });
    found.expect("a good try")
}

#[test]
fn interrupted_sweep_is_resumed() {
    let line = "sweep data --bs 4k,64k --iodepth 1,2,4 --exhaustive --runtime 1";
    let (scratch, stopped) = interrupted_sweep(line);
    assert!(stopped.stderr.contains("--resume"), "{stopped}");
    let gone_on = run(&scratch, &format!("{line} --resume --format json")).ok();
    assert!(gone_on.stderr.contains("from an earlier run"), "{gone_on}");
    assert!(is_complete(&gone_on.stdout), "{gone_on}");
    // The sweep is complete and cannot be resumed.
    let complete = run(&scratch, &format!("{line} --resume")).run();
    complete.refused_with(&["no stopped sweep", "leave out --resume"]);
}

#[test]
fn resume_without_match_lists_candidates() {
    let line = "sweep data --bs 4k,64k --iodepth 1,2,4 --exhaustive --runtime 1";
    let (scratch, _) = interrupted_sweep(line);
    let other = run(&scratch, "sweep --resume").run();
    let work = scratch.work();
    let command = format!("cd {} && iosonde {line} --resume", work.display());
    other.refused_with(&["no stopped sweep", &command]);
    assert_eq!(scratch.files(), ["data"]);
    let suite = run(&scratch, "run etcd . --resume").run();
    suite.refused_with(&["no stopped suite", "leave out --resume"]);
}

/// Consent applies to the disk that had this name when the sweep began.
#[test]
fn sweep_is_not_resumed_on_other_disk_of_same_name() {
    require!(Root);
    one_good_try(|| {
        let scratch = Scratch::shared();
        let image = |name: &str| {
            let path = scratch.out().join(name);
            lay_out(&path, 32 * MIB);
            path
        };
        let (one, other) = (image("one"), image("other"));
        let device = Loop::new(&one);
        let path = device.path().to_string_lossy().into_owned();
        let line = format!(
            "sweep {path} --allow-overwrite {path} --size 16m --rw randwrite --bs 4k,64k \
             --iodepth 1,2,4,8 --runtime 1 --exhaustive"
        );
        stopped_sweep(&scratch, &line, Signal::INT)?;
        device.replace(&other);
        let before = fs::read(&other).expect("the other disk");
        let resumed = run(&scratch, &format!("{line} --resume")).run();
        resumed.refused_with(&[&path, "the disk was detached", "without --resume"]);
        assert!(fs::read(&other).expect("the other disk") == before);
        Ok(())
    });
}

/// A sweep without a result leaves neither a stored row nor a journal.
#[test]
fn sweep_interrupted_before_first_result_leaves_no_row() {
    let scratch = Scratch::shared();
    let kept = |line: &str| run(&scratch, line).env("IOSONDE_NO_SAVE", "0");
    let line = "sweep . --size 16m --rw randread --iodepth 1,2 --runtime 30 --exhaustive";
    let mut running = kept(line).start();
    let history = scratch.out().join("history.db");
    // The layout is stored when it ends, while the first cell runs.
    let has_begun = running.until(|_| {
        let rows = kept("list --format json").run();
        history.is_file() && rows.stdout.contains("layout")
    });
    running.signal(Signal::INT);
    let stopped = running.wait();
    assert!(has_begun, "{stopped}");
    assert_eq!(stopped.status.code(), Some(130), "{stopped}");
    let list = json(&kept("list --format json").ok().stdout);
    assert_eq!(list["results"].as_array().map(Vec::len), Some(0), "{list}");
    let journals = scratch.out().join("sweeps");
    assert!(!holds_something(&journals));
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
}

#[test]
fn dry_run_prints_cells_time_and_bytes() {
    let scratch = Scratch::shared();
    let line = "sweep . --size 32m --rw randread,randwrite --bs 4k --iodepth 1,2,4 --exhaustive \
                --runtime 1";
    let dry = run(&scratch, &format!("{line} --dry-run")).ok();
    let size =
        "2 curves, 6 cells; about 7 s, plus layout and at most 10 s of waiting for an idle device";
    for words in [
        "writes a working file of 32 MiB and removes it at the end",
        size,
        "writes: 32 MiB of layout, then as much as the device accepts in 4 s",
    ] {
        assert!(
            dry.stdout.contains(words),
            "does not print {words:?}: {dry}"
        );
    }
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    assert!(!scratch.out().join("history.db").exists(), "{dry}");
    assert!(!scratch.out().join("sweeps").exists(), "{dry}");
    // A run announces the same, and need not end for that.
    let mut announced = run(&scratch, line).start();
    if announced.until(|running| running.stderr_text().contains(size)) {
        announced.signal(Signal::INT);
    }
    let announced = announced.wait();
    assert!(announced.stderr.contains(size), "{announced}");
    // A dry run refuses the same files as a run.
    lay_out(&scratch.work().join("data"), 32 * MIB);
    let refused = run(&scratch, "sweep data --rw randwrite --dry-run").run();
    refused.refused_with(&["data", "--allow-overwrite"]);
}

/// A killed sweep cleans up nothing: the next one does, and measures only missing cells.
#[test]
fn killed_sweep_is_resumed_and_leftovers_removed() {
    let line =
        "sweep . --size 32m --rw randread --bs 4k,64k --iodepth 1,2,4 --exhaustive --runtime 1";
    one_good_try(|| {
        let scratch = Scratch::shared();
        scratch.write("mine.txt", "not yours");
        stopped_sweep(&scratch, line, Signal::KILL)?;
        assert_ne!(scratch.files(), ["mine.txt"], "the working file is left");
        let gone_on = run(&scratch, &format!("{line} --resume --format json")).ok();
        assert!(gone_on.stderr.contains("from an earlier run"), "{gone_on}");
        assert!(is_complete(&gone_on.stdout), "{gone_on}");
        assert_eq!(scratch.files(), ["mine.txt"]);
        Ok(())
    });
}

#[test]
fn invalid_axes_are_refused_together() {
    let scratch = Scratch::shared();
    let line = "sweep . --bs 4k,4y --iodept 1 --rw randraed --numjobs 4..1";
    run(&scratch, line)
        .run()
        .refused_with(&["4y", "iodepth", "randread", "4..1"]);
    let line = "sweep . --bs 4k..1m --rwmixread 0..100+1 --iodepth 1..100+1";
    run(&scratch, line)
        .run()
        .refused_with(&["90900 cells", "--yes"]);
    lay_out(&scratch.work().join("data"), 32 * MIB);
    let refused = run(&scratch, "sweep data --rw randread,randwrite --iodepth 1").run();
    refused.refused_with(&["data", "--allow-overwrite"]);
    assert_eq!(scratch.files(), ["data"]);
}
