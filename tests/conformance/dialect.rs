//! fio's command line: commands, program name and helpful errors.

use std::os::unix::fs::symlink;

use iosonde_e2e::program::{Invocation, iosonde};
use iosonde_e2e::tree::{job_names, number};
use iosonde_e2e::{Program, Scratch, ours};
use serde_json::Value;

#[test]
fn program_named_fio_acts_as_fio() {
    ours!();
    let scratch = Scratch::shared();
    symlink(iosonde(), scratch.out().join("fio")).expect("a symbolic link");
    let words = [
        scratch.out().join("fio").display().to_string(),
        "--name=job".into(),
        "--size=64k".into(),
    ];
    let run = Invocation::new(&scratch, words.map(Into::into).into()).ok();
    assert!(
        run.stdout.contains("Run status group 0 (all jobs):"),
        "{run}"
    );
}

#[test]
fn version_has_format_of_fio() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let run = program.line(&scratch, "--version").ok();
        assert!(run.stdout.starts_with("fio-3."), "{program:?}: {run}");
        let document: Value = program.line(&scratch, "--name=job --size=4k").json();
        let version = document["fio version"].as_str().unwrap_or_default();
        assert!(version.starts_with("fio-3."), "{program:?}: {version}");
    }
}

#[test]
fn parse_only_runs_nothing() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        scratch.write("job.fio", "[job]\nsize=64k\nrw=write\n");
        let _ = program.line(&scratch, "--parse-only job.fio").ok();
        assert_eq!(scratch.files(), ["job.fio"], "{program:?}");
        program
            .line(&scratch, "--parse-only --name=job --rw=nonsense")
            .run()
            .refused_with(&["nonsense"]);
    }
}

#[test]
fn showcmd_prints_runnable_command_line() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        scratch.write(
            "job.fio",
            "[global]\nrw=randread\n[one]\nsize=64k\n[two]\nsize=128k\nbs=8k\n",
        );
        let run = program.line(&scratch, "--showcmd job.fio").ok();
        assert_eq!(scratch.files(), ["job.fio"], "{program:?}");
        let words: Vec<&str> = run.stdout.split_whitespace().skip(1).collect();
        let document = program.args(&scratch, words).json();
        assert_eq!(job_names(&document), ["one", "two"], "{program:?}: {run}");
        assert_eq!(document["jobs"][1]["read"]["total_ios"], 16, "{program:?}");
    }
}

/// fio mixes a line for each dropped option into its output. Here these lines are shell comments.
#[test]
fn showcmd_prints_notes_as_comments_below_the_command() {
    ours!();
    let scratch = Scratch::shared();
    scratch.write("job.fio", "[one]\nrw=read\nsize=4k\niodepth=8\n");
    let run = Program::Iosonde.line(&scratch, "--showcmd job.fio").ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines[0].contains("--name=one") && run.stderr.is_empty(),
        "{run}"
    );
    assert!(
        lines.len() == 2 && lines[1].starts_with("# note: ") && lines[1].contains("iodepth"),
        "{run}"
    );
}

#[test]
fn cmdhelp_and_enghelp_print_help() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        for (line, words) in [
            ("--cmdhelp=iodepth", &["iodepth"][..]),
            ("--cmdhelp=rw", &["randread", "readwrite"]),
            ("--cmdhelp=all", &["iodepth", "bssplit", "verify"]),
            ("--enghelp", &["libaio", "psync", "io_uring"]),
            ("--help", &["--output", "--parse-only"]),
        ] {
            let run = program.line(&scratch, line).run();
            for word in words {
                assert!(
                    run.text().contains(word),
                    "{program:?} {line} does not mention {word}: {run}"
                );
            }
        }
    }
}

#[test]
fn invalid_arguments_fail_as_in_fio() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        scratch.write("outside.fio", "rw=read\n[job]\nsize=4k\n");
        scratch.write("empty.fio", "");
        for line in [
            "absent.fio",
            "outside.fio",
            "empty.fio",
            "--name=job --rw=sideways --size=4k",
            "--name=job --ioengine=nonsense --size=4k",
            "--name=job --bs=nonsense --size=4k",
            "--name=job --nonsense=1 --size=4k",
            "--nonsense --name=job --size=4k",
            "--name=job --size=4k --wait_for=missing",
        ] {
            let run = program.line(&scratch, line).run();
            run.refused_with(&[]);
        }
    }
}

#[test]
fn mistakes_of_job_file_are_reported_together() {
    ours!();
    let scratch = Scratch::shared();
    scratch.write(
        "job.fio",
        "[global]\nrw=raedwrite\n\n[job]\nblocksise=4k\nsize=many\niodepth=4\n",
    );
    let run = Program::subject().line(&scratch, "job.fio").run();
    run.refused_with(&[
        "job.fio:2",
        "raedwrite",
        "job.fio:5",
        "blocksise",
        "blocksize",
        "job.fio:6",
        "many",
    ]);
    assert_eq!(scratch.files(), ["job.fio"]);
}

#[test]
fn unsupported_option_is_named() {
    ours!();
    let scratch = Scratch::shared();
    let run = Program::subject()
        .line(&scratch, "--name=job --size=4k --ioengine=gfapi")
        .run();
    run.refused_with(&["gfapi"]);
    let text = run.text().to_lowercase();
    assert!(
        text.contains("not supported") || text.contains("does not support"),
        "{run}"
    );
}

#[test]
fn job_file_is_read_from_stdin() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let job = scratch.write("job.fio", "[job]\nsize=64k\n");
        let run = program.line(&scratch, "-").input(&job).ok();
        assert!(run.stdout.contains("READ: bw="), "{program:?}: {run}");
    }
}

/// A repeated `filename=` or `opendir=` adds a file, also after a global one.
#[test]
fn repeated_filename_adds_file_as_fio() {
    let jobs = [
        "[j]\nfilename=a\nfilename=b\n",
        "[global]\nfilename=a\n[j]\nfilename=b:c\nfilename=a\n",
        "[global]\nfilename=a:b\n[j]\nnumjobs=2\nfilename=c\n",
        "[j]\nnrfiles=5\nfilename=a\nfilename=b\n",
        "[j]\nopendir=below\nopendir=below/2\nfilename=a\n",
    ];
    for job in jobs {
        let [by_fio, ours] = Program::both().map(|program| {
            let scratch = Scratch::shared();
            let below = scratch.work().join("below/2");
            std::fs::create_dir_all(&below).expect("a directory");
            std::fs::write(below.join("f"), [1; 1 << 16]).expect("a file");
            scratch.write("x.fio", format!("[global]\nsize=1m\nrw=write\n{job}"));
            let document = program.line(&scratch, "x.fio").json();
            let sizes: Vec<(String, u64)> = scratch
                .files()
                .into_iter()
                .map(|name| {
                    let metadata = scratch.work().join(&name).metadata();
                    (name, metadata.expect("a file").len())
                })
                .collect();
            (sizes, number(&document, "/jobs/0/write/io_bytes"))
        });
        assert_eq!(ours, by_fio, "{job}");
    }
}
