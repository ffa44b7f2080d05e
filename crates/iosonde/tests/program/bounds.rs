//! Endless, huge or expanding input fails in bounded time and memory, or is cut as in fio.

use crate::common::{Scratch, error};
use std::fs::File;
use std::process::{Command, Output, Stdio};

/// Address space of each program, of which libraries and threads take a third.
const MOST_MEMORY: &str = "--as=1500000000";
/// CPU seconds after which the kernel kills the program.
const MOST_CPU: &str = "--cpu=20";

impl Scratch {
    /// Runs the program with limits on memory and time.
    fn bounded(&self, words: &[&str], stdin: Stdio) -> Output {
        let inner = self.command(words);
        let mut outer = Command::new("prlimit");
        outer
            .args([MOST_MEMORY, MOST_CPU, "--core=0"])
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(&self.0)
            .stdin(stdin);
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => outer.env(name, value),
                None => outer.env_remove(name),
            };
        }
        outer.output().unwrap()
    }

    /// Checks that the program fails with an error that contains these texts.
    fn refused(&self, words: &[&str], stdin: Stdio, expected: &[&str]) {
        let output = self.bounded(words, stdin);
        let said = error(&output);
        let status = output.status.code();
        assert!(
            matches!(status, Some(1..=4)),
            "{words:?}: {status:?}: {said}"
        );
        for word in expected {
            assert!(said.contains(word), "{words:?}: no {word:?} in {said}");
        }
        assert!(said.len() < 10_000, "{words:?}: {} bytes", said.len());
    }
}

const SIZE: [&str; 4] = ["fio", "--name=a", "--ioengine=null", "--size=1m"];

#[test]
fn endless_job_files_are_rejected() {
    let scratch = Scratch::new("bounds-jobs");
    let twenty = |path: &str| format!("include {path}\n").repeat(20);
    scratch.file("cycle.inc", &twenty("cycle.inc"));
    scratch.file(
        "cycle.fio",
        "[a]\nsize=1m\nioengine=null\ninclude cycle.inc\n",
    );
    for depth in 1..=15 {
        scratch.file(
            &format!("{depth}.inc"),
            &twenty(&format!("{}.inc", depth + 1)),
        );
    }
    scratch.file("16.inc", "bs=4k\n");
    scratch.file("wide.fio", "[a]\nsize=1m\nioengine=null\ninclude 1.inc\n");
    scratch.file(
        "device.fio",
        "[a]\nsize=1m\nioengine=null\ninclude /dev/zero\n",
    );
    for (file, expected) in [
        ("cycle.fio", "includes itself"),
        ("wide.fio", "more than 1000 includes"),
        ("device.fio", "it is a device, not a regular file"),
        ("/dev/zero", "it is a device, not a regular file"),
    ] {
        scratch.refused(&["fio", file], Stdio::null(), &[expected]);
    }
    let zeros = File::open("/dev/zero").unwrap();
    scratch.refused(
        &["fio", "-"],
        zeros.into(),
        &["it is a device, not a regular file"],
    );
    let limits = ["limits", "gcp-pd-ssd:100GiB", "--file", "/dev/zero"];
    scratch.refused(
        &limits,
        Stdio::null(),
        &["it is a device, not a regular file"],
    );
}

#[test]
fn endless_traces_are_rejected() {
    let scratch = Scratch::new("bounds-traces");
    let words = [&SIZE[..], &["--read_iolog=/dev/zero"]].concat();
    let expected = ["it is a device, not a regular file", "write_iolog"];
    scratch.refused(&words, Stdio::null(), &expected);
    let words = [&SIZE[..], &["--read_iolog=-"]].concat();
    let zeros = File::open("/dev/zero").unwrap();
    scratch.refused(&words, zeros.into(), &expected);
}

#[test]
fn pattern_from_device_is_truncated_as_in_fio() {
    let scratch = Scratch::new("bounds-pattern");
    for option in [
        "--buffer_pattern='/dev/urandom'",
        "--verify_pattern='/dev/urandom'",
    ] {
        let words = [&SIZE[..], &["--rw=write", option]].concat();
        let output = scratch.bounded(&words, Stdio::null());
        assert!(output.status.success(), "{}", error(&output));
    }
}

#[test]
fn file_count_and_size_are_bounded() {
    let scratch = Scratch::new("bounds-files");
    let fio = |options: &[&'static str]| [&["fio", "--name=a", "--rw=write"], options].concat();
    for engine in ["--ioengine=psync", "--ioengine=null"] {
        for (options, expected) in [
            (&["--filesize=4k", "--nrfiles=4294967295"][..], "nrfiles"),
            (&["--filesize=0-18446744073709551615"], "8 EiB"),
            (&["--size=18446744073709551615"], "8 EiB"),
            (&["--size=9223372036854775807", "--offset=1m"], "8 EiB"),
            (
                &[
                    "--size=1m",
                    "--numjobs=3",
                    "--offset_increment=9223372036854775807",
                ],
                "8 EiB",
            ),
        ] {
            let words = [&fio(options)[..], &[engine]].concat();
            scratch.refused(&words, Stdio::null(), &[expected]);
        }
    }
}

#[test]
fn endless_documents_are_not_imported() {
    let scratch = Scratch::new("bounds-import");
    let refused = |file: &str, expected: &str| {
        scratch.refused(&["import", file], Stdio::null(), &[expected]);
    };
    refused("/dev/zero", "it is a device, not a regular file");
    let zeros = File::open("/dev/zero").unwrap();
    let expected = ["it is a device, not a regular file"];
    scratch.refused(&["import", "-"], zeros.into(), &expected);
    scratch.file("deep.json", &"{\"jobs\":".repeat(1 << 20));
    refused("deep.json", "recursion limit");
    // Each line may begin a document.
    scratch.file("lines.json", &"{\n".repeat(1 << 20));
    refused("lines.json", "invalid JSON");
    let huge = File::create(scratch.path("huge.json")).unwrap();
    std::io::Write::write_all(&mut &huge, b"{\"jobs\":[\"").unwrap();
    // NUL bytes are no JSON, but a hole takes no disk space, unlike spaces.
    huge.set_len(1 << 30).unwrap();
    let output = scratch.bounded(&["import", "huge.json"], Stdio::null());
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
}

#[test]
fn expanding_suites_are_rejected() {
    let scratch = Scratch::new("bounds-suites");
    let check = |file: &str, expected: &str| {
        let words = ["run", file, "sim:sata-ssd", "--check", "--yes"];
        scratch.refused(&words, Stdio::null(), &[expected]);
    };
    let axes = "axes = { iodepth = \"1..1000+1\", numjobs = \"1..100+1\", bs = \"4k..400k+4k\" }";
    let workload = format!(
        "[[workload]]\nname = \"a\"\noptions = {{ rw = \"read\", size = \"1g\", runtime = 1 \
         }}\n{axes}\n"
    );
    scratch.file("steps.toml", &workload);
    check("steps.toml", "10000000 runs");
    scratch.file("cells.toml", &format!("{workload}sweep = {{}}\n"));
    check("cells.toml", "10000000 runs");
    let many: String = (0..300_000)
        .map(|number| format!("[[workload]]\nname = \"{number}\"\nprobe = {{}}\n"))
        .collect();
    scratch.file("workloads.toml", &many);
    check("workloads.toml", "300000 workloads");
    let many = "\"read.iops >= 1\",".repeat(10_000);
    let more = "expect = [\"read.iops >= 2\"]\n";
    scratch.file("expected.toml", &format!("expect = [{many}]\n"));
    let text = format!("include = [\"expected.toml\"]\n{workload}{more}");
    scratch.file("expects.toml", &text);
    check(
        "expects.toml",
        "10001 expectations, more than the limit of 10000",
    );
    for depth in 1..=14 {
        let next = format!("{}.toml", depth + 1);
        let text = format!("include = [\"{next}\", \"{next}\", \"{next}\"]\n");
        scratch.file(&format!("{depth}.toml"), &text);
    }
    scratch.file("15.toml", "about = \"x\"\n");
    check("1.toml", "more than 256 includes");
    scratch.file("device.toml", "include = [\"/dev/zero\"]\n");
    check("device.toml", "it is a device, not a regular file");
    check("/dev/zero", "it is a device, not a regular file");
}
