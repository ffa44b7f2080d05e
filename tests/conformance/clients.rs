//! Programs that start fio: its output and signals must not depend on which program runs.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;

use iosonde_e2e::program::Running;
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, ours};
use rustix::process::Signal;

/// Jobs on which iosonde has advice, with a word of it.
const ADVISED: [(&str, &str, &str); 4] = [
    (
        "--name=job --ioengine=psync --iodepth=4",
        "depth is 1",
        "depth is 1",
    ),
    (
        "--name=job --ioengine=posixaio --iodepth=4",
        "posixaio",
        "posixaio",
    ),
    (
        "--bssplit=4k/50:8k/50 --name=job --bsrange=4k-8k",
        "bssplit",
        "bssplit",
    ),
    // The verdict about the cache needs a device that no other program uses meanwhile.
    (
        "--name=job --bs=4k --invalidate=0 --io_size=20m",
        "caches: client",
        "not_dropped",
    ),
];

#[test]
fn advice_in_any_format_leaves_stderr_empty() {
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 1 << 20);
    for (job, ..) in ADVISED {
        for format in [
            "normal",
            "json",
            "terse --output=result",
            "normal,json+ --output=result",
        ] {
            let line =
                format!("{job} --filename=data --size=1m --rw=read --output-format={format}");
            let run = Program::subject().line(&scratch, &line).ok();
            assert_eq!(run.stderr, "", "{run}");
        }
    }
}

#[test]
fn advice_is_in_json_and_below_the_normal_report() {
    ours!();
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 1 << 20);
    for (job, words, key) in ADVISED {
        let line = format!("{job} --filename=data --size=1m --rw=read");
        let run = |format: &str| {
            let run = Program::Iosonde.line(&scratch, &line);
            run.and(&format!("--output-format={format}")).ok().stdout
        };
        let normal = run("normal");
        let (_, below) = normal.split_once("Run status group 0").expect("a report");
        let note = below.lines().find(|line| line.contains(words));
        assert!(
            note.is_some_and(|note| note.starts_with("note: ")),
            "{normal}"
        );
        let json: serde_json::Value = serde_json::from_str(&run("json")).expect("JSON");
        let ours = &json["iosonde"];
        let advice = ["notes", "verdicts", "caches"].map(|part| ours[part].to_string());
        assert!(advice.join(" ").contains(key), "{ours}");
        assert!(!run("terse").contains("note:"));
    }
}

#[test]
fn parse_only_prints_advice_on_stdout() {
    ours!();
    let scratch = Scratch::shared();
    let line = "--parse-only --name=job --size=1m --ioengine=psync --iodepth=4";
    let run = Program::Iosonde.line(&scratch, line).ok();
    assert_eq!(run.stderr, "", "{run}");
    assert!(
        run.stdout.contains("note: ") && run.stdout.contains("depth is 1"),
        "{run}"
    );
}

#[test]
fn doubled_percent_sign_is_one() {
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 4 << 20);
    scratch.write(
        "percent.fio",
        "[job]\nfilename=data\nrw=read\nsize=100%%\noffset=50%%\nsteadystate=iops:10%%\n\
         ss_dur=60\n",
    );
    let on_the_line =
        "--name=job --filename=data --rw=randread --size=50%% --offset_increment=10%%";
    for line in ["percent.fio", on_the_line] {
        let read = |program: Program| {
            let json = program.line(&scratch, line).json();
            (
                json["jobs"][0]["read"]["io_bytes"].clone(),
                json["jobs"][0]["job options"].clone(),
            )
        };
        let (reference, subject) = (read(Program::Fio), read(Program::subject()));
        assert_eq!(reference, subject, "{line}");
        assert_eq!(subject.0, 2 << 20, "{line}");
    }
}

#[test]
fn parse_only_without_job_succeeds() {
    let scratch = Scratch::shared();
    for program in Program::both() {
        let run = program.line(&scratch, "--parse-only").run();
        assert!(run.status.success(), "{program:?}: {run}");
    }
}

#[test]
fn missing_processors_are_refused() {
    let scratch = Scratch::shared();
    for option in ["cpus_allowed=0-1000", "cpumask=4611686018427387905"] {
        for program in Program::both() {
            let line = format!("--name=a --ioengine=null --rw=read --size=4k --{option}");
            let run = program.line(&scratch, &line).run();
            assert!(!run.status.success(), "{program:?}: {option}: {run}");
            if !program.is_fio() {
                run.refused_with(&["does not exist; ", "this machine has 0"]);
            }
        }
    }
}

#[test]
fn status_line_of_null_job_counts_its_file() {
    let scratch = Scratch::shared();
    let line = "--name=a --ioengine=null --rw=read --size=1g --rate=1m --time_based --runtime=2 \
                --eta=always --eta-newline=500ms";
    for program in Program::both() {
        // Without CPU time, no line is drawn within two seconds.
        one_good_try(|| {
            let run = program.line(&scratch, line).ok();
            let is_counted = run.stdout.contains("Jobs: 1 (f=1)");
            ensure(is_counted, || format!("{program:?}: {run}"))
        });
    }
}

#[test]
fn newer_fio_options_are_accepted_only_when_off() {
    ours!();
    let scratch = Scratch::shared();
    let job = "--parse-only --name=a --size=4k";
    for off in [
        "log_issue_time=0",
        "fdp=0",
        "dataplacement=none",
        "sprandom=0",
        "num_range=1",
    ] {
        let _ = Program::Iosonde
            .line(&scratch, &format!("{job} --{off}"))
            .ok();
    }
    for (on, version) in [
        ("log_issue_time=1", "3.37 or 3.38"),
        ("fdp=1", "3.34 to 3.36"),
        ("write_mode=uncor", "3.37 or 3.38"),
        ("sprandom=1", "3.40 or 3.41"),
        ("verify_header_seed=0", "3.39"),
        ("fadvise_hint=noreuse", "3.34 to 3.36"),
        ("ioengine=dircreate", "3.34 to 3.39"),
        ("log_max_value=max", "3.34 to 3.39"),
        ("log_window_value=both", "3.34 to 3.39"),
        ("libblkio_driver=io_uring", "3.34 to 3.39"),
        ("http_object_mode=range", "3.40 or 3.41"),
    ] {
        let run = Program::Iosonde
            .line(&scratch, &format!("{job} --{on}"))
            .run();
        run.refused_with(&[&format!("came with fio {version}")]);
        assert!(!run.stderr.contains("alternative: "), "{run}");
    }
    // The advice for block devices covers the purpose of this engine, too.
    let line = format!("{job} --ioengine=libblkio");
    let run = Program::Iosonde.line(&scratch, &line).run();
    run.refused_with(&["came with fio 3.34 to 3.39", "io_uring on the block device"]);
    for engine in ["filestat", "ftruncate", "e4defrag", "external:/x.so"] {
        let run = Program::Iosonde
            .line(&scratch, &format!("{job} --ioengine={engine}"))
            .run();
        run.refused_with(&["not supported"]);
        assert!(!run.stderr.contains("alternative: "), "{run}");
    }
}

/// Starts a job without end and waits until its status line shows that it runs. It is a thread,
/// since a process of fio would outlive a signal that kills its parent.
fn running(program: Program, scratch: &Scratch) -> Running {
    let line = "--name=job --ioengine=null --rw=read --size=1g --rate=1m --thread --time_based \
                --runtime=600 --eta=always --eta-newline=250ms";
    // Under nohup or as a background job of a script, the program would inherit ignored signals.
    let mut running = program
        .line(scratch, line)
        .behind(["env", "--default-signal"].map(OsString::from))
        .env("TMPDIR", scratch.work())
        .start();
    running.must_reach("the status line", |running| {
        running.stdout_text().contains("Jobs: 1 (f=1)")
    });
    running
}

#[test]
fn sigusr1_and_dump_file_print_report_during_run() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let mut running = running(program, &scratch);
        let reports = |running: &Running| running.stdout_text().matches("clat percentiles").count();
        running.signal(Signal::USR1);
        running.must_reach("a report", |running| reports(running) == 1);
        fs::write(scratch.work().join("fio-dump-status"), "").expect("a request");
        running.must_reach("another report", |running| reports(running) == 2);
        assert!(
            !scratch.work().join("fio-dump-status").exists(),
            "{program:?}"
        );
        running.signal(Signal::INT);
        let run = running.wait();
        assert!(!run.status.success(), "{program:?}: {run}");
        assert_eq!(
            run.stdout.matches("clat percentiles").count(),
            3,
            "{program:?}: {run}"
        );
    }
}

#[test]
fn ending_signals_have_documented_status() {
    // The status for fio and iosonde, or the negated signal that kills it; and if it reports.
    for (signal, fio, iosonde) in [
        (Signal::INT, (128, true), (130, true)),
        (Signal::TERM, (128, true), (143, true)),
        (Signal::HUP, (-1, false), (129, true)),
        (Signal::QUIT, (-3, false), (-3, false)),
    ] {
        for program in Program::both() {
            let scratch = Scratch::shared();
            let running = running(program, &scratch);
            running.signal(signal);
            let run = running.wait();
            let status = run
                .status
                .code()
                .or(run.status.signal().map(|signal| -signal));
            let seen = (status.expect("an end"), run.stdout.contains("READ: bw="));
            let expected = if program.is_fio() { fio } else { iosonde };
            assert_eq!(seen, expected, "{program:?}: {signal:?}: {run}");
        }
    }
}
