//! fio's normal and terse output: the same lines except for figures, and the same fields.

use std::fs;

use iosonde_e2e::device::Zram;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, require, skeleton};

/// Standard output of a program, run in a new directory.
fn printed(program: Program, line: &str) -> String {
    let scratch = Scratch::shared();
    program.line(&scratch, line).ok().stdout
}

fn same_lines(line: &str) {
    let line = format!("{line} --eta=never");
    // Without CPU time, a job has no I/O or no sample within its time, whose lines are missing.
    one_good_try(|| {
        let (reference, subject) = (
            printed(Program::Fio, &line),
            printed(Program::subject(), &line),
        );
        let differences = skeleton::differences(&reference, &subject);
        ensure(differences.is_empty(), || {
            let differences = differences.join("\n");
            format!("{line}\n{differences}\n\nfio:\n{reference}\nsubject:\n{subject}")
        })
    });
}

macro_rules! lines {
    ($($name:ident $line:literal)+) => {
        $(#[test] fn $name() { same_lines($line); })+
    };
}

// Long enough for samples of bandwidth in each run.
lines! {
    text_of_sequential_write "--name=job --size=4m --rw=write --time_based --runtime=2"
    text_of_random_mix
        "--name=job --size=4m --rw=randrw --ioengine=libaio --iodepth=8 --direct=1 --time_based \
         --runtime=2"
    text_of_several_jobs "--name=job --size=1m --rw=randread --numjobs=3 --time_based --runtime=2"
    text_of_one_group
        "--name=job --size=1m --rw=randread --numjobs=3 --group_reporting --time_based --runtime=2"
    text_with_fsync "--name=job --size=1m --rw=write --fsync=4 --time_based --runtime=2"
    text_without_percentiles
        "--name=job --size=1m --rw=randread --clat_percentiles=0 --time_based --runtime=2"
    text_with_gtod_reduce
        "--name=job --size=1m --rw=randread --gtod_reduce=1 --time_based --runtime=2"
    text_of_null_engine
        "--name=job --size=1g --rw=randread --ioengine=null --time_based --runtime=2"
    text_with_unified_reporting
        "--name=job --size=1m --rw=randrw --unified_rw_reporting=1 --time_based --runtime=2"
}

/// The kind of each terse field, so that figures may differ.
fn kinds(terse: &str) -> Vec<String> {
    terse.trim_end().split(';').map(kind).collect()
}

fn kind(field: &str) -> String {
    if let Some((left, right)) = field.split_once("%=") {
        return format!("{left}%={}", kind(right));
    }
    match field.strip_suffix('%') {
        Some(number) => format!("{} per cent", kind(number)),
        None if field.parse::<i64>().is_ok() => "integer".to_owned(),
        None if field.parse::<f64>().is_ok() => "float".to_owned(),
        None if field.starts_with("fio-") || field.starts_with("iosonde-") => "version".to_owned(),
        None => field.to_owned(),
    }
}

fn terse_of(program: Program, version: u32, job: &str) -> Vec<String> {
    let text = printed(
        program,
        &format!("--name=job --size=1m --minimal --terse-version={version} {job}"),
    );
    let start = format!("{version};");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(&start))
        .collect();
    assert_eq!(
        lines.len(),
        1,
        "{program:?} must print one line that begins with {start}: {text}"
    );
    kinds(lines[0])
}

#[test]
fn terse_fields_have_kinds_of_fio() {
    for version in [3, 4, 5] {
        for job in [
            "--rw=read",
            "--rw=randrw --ioengine=libaio --direct=1 --iodepth=4",
            "--rw=write --fsync=8",
            "--rw=read --description=words",
        ] {
            let (reference, subject) = (
                terse_of(Program::Fio, version, job),
                terse_of(Program::subject(), version, job),
            );
            assert_eq!(subject, reference, "terse version {version} of {job}");
        }
    }
}

#[test]
fn terse_output_has_line_per_job() {
    for program in Program::both() {
        let text = printed(
            program,
            "--name=a --size=64k --numjobs=2 --name=b --size=64k --output-format=terse",
        );
        let names: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("3;"))
            .map(|line| line.split(';').nth(2))
            .collect();
        assert_eq!(
            names,
            [Some("a"), Some("a"), Some("b")],
            "{program:?}: {text}"
        );
    }
}

#[test]
fn several_formats_are_printed_together() {
    for program in Program::both() {
        let text = printed(
            program,
            "--name=job --size=64k --output-format=normal,terse,json",
        );
        assert!(
            text.contains("Run status group 0 (all jobs):"),
            "{program:?}: {text}"
        );
        assert!(
            text.lines().any(|line| line.starts_with("3;")),
            "{program:?}: {text}"
        );
        assert!(text.contains("\"jobs\""), "{program:?}: {text}");
    }
}

/// A failed job is an X beside a running one.
#[test]
fn status_line_has_letter_per_job() {
    for program in Program::both() {
        let line = "--eta=always --size=64k --output=result.txt --name=a --filename=zeros \
                    --rw=read --verify=crc32c --name=b --rw=randread --time_based --runtime=3 \
                    --thinktime=1000";
        // The line is drawn once a second, possibly before the first job fails.
        one_good_try(|| {
            let scratch = Scratch::shared();
            scratch.write("zeros", [0; 64 << 10]);
            let run = program.line(&scratch, line).run();
            assert!(!run.status.success(), "{program:?}: {run}");
            ensure(run.text().contains("[X(1),r(1)]"), || {
                format!("{program:?}: {run}")
            })
        });
    }
}

/// Scripts that request the status line read it from standard output.
#[test]
fn requested_status_line_is_in_output() {
    for program in Program::both() {
        let line =
            "--eta=always --name=a --rw=read --size=64k --time_based --runtime=3 --thinktime=1000";
        one_good_try(|| {
            let text = printed(program, line);
            let is_drawn = text.contains("Jobs: 1 (f=1): [R(1)]");
            ensure(is_drawn, || format!("{program:?}: {text}"))
        });
    }
}

#[test]
fn output_option_writes_file() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let run = program
            .line(&scratch, "--name=job --size=64k --output=result.txt")
            .ok();
        let text = fs::read_to_string(scratch.work().join("result.txt")).expect("a result");
        assert!(text.contains("READ: bw="), "{program:?}: {text}");
        assert!(!run.stdout.contains("READ: bw="), "{program:?}: {run}");
    }
}

#[test]
fn trims_have_separate_lines() {
    require!(Root, Zram);
    let scratch = Scratch::shared();
    let disk = Zram::new(16 << 20);
    let line = format!(
        "--name=job --filename={} --rw=randtrim --bs=4k --time_based --runtime=2 --eta=never",
        disk.path().display()
    );
    one_good_try(|| {
        let [reference, subject] =
            Program::both().map(|program| program.line(&scratch, &line).ok().stdout);
        let differences = skeleton::differences(&reference, &subject);
        ensure(differences.is_empty(), || differences.join("\n"))
    });
}
