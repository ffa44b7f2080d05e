//! The history from outside: several processes, crashes, damage, and foreign files.

use crate::common::{JOB, Scratch, error, integrity, text};
use rusqlite::Connection;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn job_is_stored_listed_shown_exported_and_removed() {
    let scratch = Scratch::new("kept");
    let words: Vec<&str> = ["--label", "disk=new"].into_iter().chain(JOB).collect();
    let output = scratch.run(&words);
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(error(&output), "");
    let line = scratch.listed().remove(0);
    assert!(line.contains("disk=new"), "{line}");
    let id = &line[..10];
    let shown = text(&scratch.run(&["show", &id[..4]]).stdout);
    assert!(
        shown.contains("read IOPS") && shown.contains("disk=new"),
        "{shown}"
    );
    for format in ["json", "fio-json", "csv", "markdown", "table"] {
        let output = scratch.run(&["export", id, "--format", format]);
        assert!(output.status.success(), "{format}: {}", error(&output));
    }
    // The export equals the measurement, so its import adds nothing.
    let exported = scratch.run(&["export", id]).stdout;
    fs::write(scratch.path("own.json"), &exported).unwrap();
    let again = text(&scratch.run(&["import", "own.json"]).stdout);
    assert!(
        again.starts_with(id) && again.contains("already"),
        "{again}"
    );
    let elsewhere = scratch.run(&["import", "own.json", "--store", "other.db"]);
    assert!(elsewhere.status.success(), "{}", error(&elsewhere));
    let compared = scratch.run(&["compare", id, "own.json"]);
    let shown = text(&compared.stdout);
    assert!(shown.starts_with("No difference shown"), "{shown}");
    assert!(scratch.run(&["rm", id]).status.success());
    assert_eq!(scratch.listed(), [""; 0]);
    let connection = Connection::open(scratch.store()).unwrap();
    for table in ["run", "part", "figure", "label"] {
        let count = format!("SELECT count(*) FROM {table}");
        let left: i64 = connection.query_row(&count, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn commands_default_to_latest_result() {
    let scratch = Scratch::new("latest");
    for command in ["show", "report"] {
        let output = scratch.run(&[command]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(error(&output).contains("no history yet"), "{command}");
    }
    for label in ["disk=old", "disk=new"] {
        let words: Vec<&str> = ["--label", label].into_iter().chain(JOB).collect();
        assert!(scratch.run(&words).status.success());
    }
    for command in ["show", "report"] {
        let output = scratch.run(&[command]);
        assert!(output.status.success(), "{command}: {}", error(&output));
        let said = error(&output);
        assert!(
            said.starts_with("no result is named: using the latest, "),
            "{said}"
        );
        assert!(text(&output.stdout).contains("new"), "{command}");
    }
    let compared = scratch.done(&["compare", "latest~1", "latest", "--format", "json"]);
    assert!(compared.contains("\"comparison\""), "{compared}");
    let output = scratch.run(&["compare", "latest~2", "latest"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error(&output).contains("holds 2 results"),
        "{}",
        error(&output)
    );
    let output = scratch.run(&["report", "disk=mew"]);
    assert!(
        error(&output).contains("did you mean disk=new"),
        "{}",
        error(&output)
    );
    let output = scratch.run(&["compare", "lastest", "latest"]);
    assert!(
        error(&output).contains("did you mean latest?"),
        "{}",
        error(&output)
    );
    // Without a terminal iosonde cannot ask.
    let refused = scratch.run(&["rm", "latest"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error(&refused).contains("--yes"), "{}", error(&refused));
    assert!(scratch.run(&["rm", "latest", "--yes"]).status.success());
    assert!(scratch.listed()[0].contains("disk=old"));
}

#[test]
fn short_prefix_is_removed_only_with_consent() {
    let scratch = Scratch::new("short-prefix");
    scratch.run(&["import", scratch.fio_json(1).to_str().unwrap()]);
    let id = scratch.listed()[0][..10].to_owned();
    // Without a terminal iosonde cannot ask.
    let refused = scratch.run(&["rm", &id[..3]]);
    assert_eq!(refused.status.code(), Some(2));
    let message = error(&refused);
    assert!(
        message.contains(&id[..6]) && message.contains("--yes"),
        "{message}"
    );
    assert_eq!(scratch.listed().len(), 1);
    let run = scratch.run(&["rm", &format!("{id}.1")]);
    let help = format!("help: remove the result: `iosonde rm {id}`");
    assert!(error(&run).contains(&help), "{}", error(&run));
    assert!(scratch.run(&["rm", &id[..3], "--yes"]).status.success());
    assert_eq!(scratch.listed(), [""; 0]);
    // The digits that `list` shows need no consent. A result named twice is removed once.
    scratch.run(&["import", scratch.fio_json(2).to_str().unwrap()]);
    let id = scratch.listed()[0][..10].to_owned();
    let removed = scratch.run(&["rm", &id[..6], &id]);
    assert!(removed.status.success(), "{}", error(&removed));
    assert_eq!(error(&removed).matches("removed ").count(), 1);
}

#[test]
fn list_last_keeps_the_latest_results() {
    let scratch = Scratch::new("last");
    for number in 1..=4 {
        scratch.run(&["import", scratch.fio_json(number).to_str().unwrap()]);
    }
    let all = scratch.listed();
    let listed = |last: &str| {
        let text = scratch.done(&["list", "--last", last, "--format", "csv"]);
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(all.len(), 4);
    assert_eq!(listed("2"), all[2..]);
    assert_eq!(listed("9"), all);
    assert_eq!(scratch.run(&["list", "--last", "0"]).status.code(), Some(2));
}

#[test]
fn option_and_variable_no_save_store_nothing() {
    let scratch = Scratch::new("no-save");
    let words: Vec<&str> = ["--no-save"].into_iter().chain(JOB).collect();
    assert!(scratch.run(&words).status.success());
    let refused = scratch
        .command(&JOB)
        .env("IOSONDE_NO_SAVE", "1")
        .output()
        .unwrap();
    assert!(refused.status.success());
    assert!(!scratch.path("data").exists());
    let output = scratch.run(&["list"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(
        error(&output).starts_with("no results in"),
        "{}",
        error(&output)
    );
}

#[test]
fn unwritable_history_does_not_fail_job() {
    let scratch = Scratch::new("unwritable");
    fs::write(scratch.path("file"), "").unwrap();
    let mut command = scratch.command(&JOB);
    let output = command
        .env("XDG_DATA_HOME", scratch.path("file"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(error(&output), "");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let note = json["iosonde"]["notes"][0].as_str().unwrap();
    assert!(
        note.starts_with("this result is not stored in the history"),
        "{note}"
    );
    // A file named on the command line is an error before the run.
    let words: Vec<&str> = ["--store", "file/x.db"].into_iter().chain(JOB).collect();
    let output = scratch.run(&words);
    assert_eq!(output.status.code(), Some(5), "{}", error(&output));
    assert!(output.stdout.is_empty());
}

/// A program that locks the history does not delay the output.
#[test]
fn result_is_printed_while_history_is_locked() {
    let scratch = Scratch::new("locked");
    assert!(scratch.run(&JOB).status.success());
    let other = Connection::open(scratch.store()).unwrap();
    for minutes in ["1", "3"] {
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let job = format!(
            "fio --name=a --ioengine=sim --size=1g --rw=randread --rate_iops=20 --time_based \
             --runtime={minutes}m"
        );
        let words: Vec<&str> = job.split(' ').collect();
        let mut command = scratch.command(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The utilisation is the last part of the output.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let printed = lines
            .map(Result::unwrap)
            .take_while(|line| !line.starts_with("Run status"));
        assert!(printed.count() > 10);
        other.execute_batch("COMMIT").unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success() && error(&output).is_empty(),
            "{}",
            error(&output)
        );
    }
    assert_eq!(scratch.listed().len(), 3);
}

#[test]
fn concurrent_writers_lose_no_result() {
    let scratch = Scratch::new("writers");
    let files: Vec<PathBuf> = (0..24).map(|number| scratch.fio_json(number)).collect();
    // In each round, the first program creates the file while the others open it.
    for _ in 0..6 {
        let _ = fs::remove_dir_all(scratch.path("data"));
        let started: Vec<_> = files
            .chunks(6)
            .map(|files| {
                let mut command = scratch.command(&["import"]);
                command.args(files).stdout(Stdio::null());
                command.stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for child in started {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", error(&output));
        }
        assert_eq!(scratch.listed().len(), 24);
        assert_eq!(integrity(&scratch.store()), "ok");
    }
}

#[test]
fn reported_result_survives_kill() {
    let scratch = Scratch::new("kill");
    let mut said: Vec<String> = Vec::new();
    // On a busy machine the first dozen rounds may be killed before they store anything.
    for round in 0..100 {
        if round >= 12 && !said.is_empty() {
            break;
        }
        let files: Vec<PathBuf> = (0..40)
            .map(|number| scratch.fio_json(round * 40 + number))
            .collect();
        let mut command = scratch.command(&["import"]);
        command
            .args(files)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(u64::from(round) * 9));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let lines = text(&output.stdout);
        // The kill may have cut the last line.
        let whole = lines
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        said.extend(whole.map(|line| line[..10].to_owned()));
        assert_eq!(integrity(&scratch.path_of_store_or_new()), "ok");
    }
    assert!(
        !said.is_empty(),
        "every round was killed before it kept anything"
    );
    let listed: Vec<String> = scratch
        .listed()
        .iter()
        .map(|line| line[..10].to_owned())
        .collect();
    for id in &said {
        assert!(listed.contains(id), "{id} is lost");
    }
    // No study is incomplete: each has its run, its part and its figures.
    let connection = Connection::open(scratch.store()).unwrap();
    let halves = "SELECT count(*) FROM study WHERE finished_at_ms IS NULL OR (SELECT count(*) FROM \
                  figure JOIN run \
                  ON run.id = figure.run WHERE run.study = study.id) != 2";
    let halves: i64 = connection.query_row(halves, [], |row| row.get(0)).unwrap();
    assert_eq!(halves, 0);
}

impl Scratch {
    /// Path of the history, or of an empty one if there is none.
    fn path_of_store_or_new(&self) -> PathBuf {
        let store = self.store();
        if store.exists() {
            store
        } else {
            self.path("none.db")
        }
    }
}

#[test]
fn damaged_history_is_renamed_unchanged() {
    let scratch = Scratch::new("damaged");
    scratch.run(&["import", scratch.fio_json(1).to_str().unwrap()]);
    let store = scratch.store();
    // Overwrites pages in the middle.
    let mut bytes = fs::read(&store).unwrap();
    let length = bytes.len();
    bytes[4096..length / 2].fill(0xa5);
    fs::write(&store, &bytes).unwrap();
    let output = scratch.run(&["import", scratch.fio_json(2).to_str().unwrap()]);
    assert!(output.status.success(), "{}", error(&output));
    assert!(
        error(&output).contains("was damaged and is now"),
        "{}",
        error(&output)
    );
    assert_eq!(scratch.listed().len(), 1);
    assert_eq!(aside(&store), [bytes]);
    // The same for a file that is no database, when a job is stored.
    fs::write(&store, "what is this?").unwrap();
    let output = scratch.run(&JOB);
    assert!(output.status.success());
    assert_eq!(error(&output), "");
    let json = text(&output.stdout);
    assert!(json.contains("was damaged and is now"), "{json}");
    assert_eq!(aside(&store).len(), 2);
    assert_eq!(scratch.listed().len(), 1);
}

/// Contents of the renamed files.
fn aside(store: &Path) -> Vec<Vec<u8>> {
    let beside = fs::read_dir(store.parent().unwrap()).unwrap();
    let names = beside.map(|entry| entry.unwrap().path());
    let damaged = names.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    damaged.map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn reading_damaged_history_leaves_file_unchanged() {
    let scratch = Scratch::new("reading-damaged");
    scratch.run(&["import", scratch.fio_json(1).to_str().unwrap()]);
    fs::write(scratch.store(), "what is this?").unwrap();
    let output = scratch.run(&["list"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(
        error(&output).contains("the history is damaged"),
        "{}",
        error(&output)
    );
    assert_eq!(fs::read(scratch.store()).unwrap(), b"what is this?");
    assert!(aside(&scratch.store()).is_empty());
}

#[test]
fn foreign_files_are_left_unchanged() {
    let scratch = Scratch::new("others");
    let json = scratch.fio_json(1);
    let before = fs::read(&json).unwrap();
    let name = json.to_str().unwrap();
    for words in [
        vec!["list", "--store", name],
        vec!["import", name, "--store", name],
    ] {
        let output = scratch.run(&words);
        assert_eq!(output.status.code(), Some(5), "{words:?}");
        assert!(error(&output).contains("not a history of iosonde"));
    }
    assert_eq!(fs::read(&json).unwrap(), before);
    let other = scratch.path("browser.db");
    let connection = Connection::open(&other).unwrap();
    connection
        .execute_batch("CREATE TABLE bookmarks (url TEXT)")
        .unwrap();
    drop(connection);
    let output = scratch.run(&["import", name, "--store", other.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5));
    assert!(error(&output).contains("not a history of iosonde"));
}

#[test]
fn newer_history_is_rejected_and_left_unchanged() {
    let scratch = Scratch::new("newer");
    scratch.run(&["import", scratch.fio_json(1).to_str().unwrap()]);
    let connection = Connection::open(scratch.store()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let output = scratch.run(&["list"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(
        error(&output).contains("a newer iosonde wrote this history"),
        "{}",
        error(&output)
    );
    let output = scratch.run(&JOB);
    assert!(output.status.success());
    assert_eq!(error(&output), "");
    let json = text(&output.stdout);
    assert!(
        json.contains("a newer iosonde wrote this history"),
        "{json}"
    );
    let connection = Connection::open(scratch.store()).unwrap();
    let studies: i64 = connection
        .query_row("SELECT count(*) FROM study", [], |row| row.get(0))
        .unwrap();
    assert_eq!(studies, 1);
}

#[test]
fn missing_results_and_files_are_reported() {
    let scratch = Scratch::new("missing");
    let status = |words: &[&str]| {
        let output = scratch.run(words);
        (output.status.code().unwrap(), error(&output))
    };
    assert!(
        status(&["show", "abc"])
            .1
            .contains("there is no history yet")
    );
    let first = scratch.fio_json(1);
    let first = first.to_str().unwrap();
    scratch.run(&["import", first, scratch.fio_json(2).to_str().unwrap()]);
    assert_eq!(status(&["show", "xyz"]).0, 2);
    assert_eq!(status(&["rm", "xyz"]).0, 2);
    assert!(status(&["show", ""]).1.contains("there is no result"));
    let (code, message) = status(&["compare", "disk=old", first]);
    assert_eq!(
        (code, message.contains("no result has the label disk=old")),
        (2, true)
    );
    let (code, message) = status(&["compare", "xyz", first]);
    assert_eq!(
        (code, message.contains("is not a file, a label or the ID")),
        (2, true)
    );
    fs::write(scratch.path("text"), "IOPS: 5").unwrap();
    let (code, message) = status(&["import", "text", "absent.json"]);
    assert_eq!(code, 2);
    assert!(
        message.contains("text: the file contains no JSON") && message.contains("absent.json: ")
    );
}

#[test]
fn slower_comparison_exits_with_status_6() {
    let scratch = Scratch::new("slower");
    let job = |us: u32, name: &str| {
        let sim = format!("--sim=parallel=1,read_us={us},noise=0.01,seed={us}");
        let words = [
            "fio",
            "--name=j",
            "--ioengine=sim",
            &sim,
            "--rw=randread",
            "--size=1m",
        ];
        let more = ["--runtime=60", "--time_based", "--output-format=json"];
        let words: Vec<&str> = words.into_iter().chain(more).collect();
        let output = scratch.run(&words);
        assert!(output.status.success(), "{}", error(&output));
        let id = scratch.listed().last().unwrap()[..10].to_owned();
        let exported = scratch.run(&["export", &id]).stdout;
        fs::write(scratch.path(name), exported).unwrap();
    };
    job(10_000, "before.json");
    job(11_000, "after.json");
    let status = |a: &str, b: &str, percent: &str| {
        let output = scratch.run(&["compare", a, b, "--fail-if-slower", percent]);
        (output.status.code().unwrap(), error(&output))
    };
    let (code, message) = status("before.json", "after.json", "5%");
    assert_eq!(code, 6, "{message}");
    assert!(message.contains("j read IOPS by 9."), "{message}");
    assert_eq!(status("before.json", "after.json", "20%").0, 0);
    assert_eq!(status("after.json", "before.json", "5%").0, 0);
    assert_eq!(status("before.json", "before.json", "0%").0, 0);
}

/// As in `iosonde probe TARGET 2>&1 >/dev/null | head -1`.
#[test]
fn closed_stderr_does_not_stop_probe() {
    let scratch = Scratch::new("unheard");
    let mut child = scratch
        .command(&["probe", "sim:read_us=100,seed=1", "--quick"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("4k random read"));
    assert_eq!(scratch.listed().len(), 1);
}

/// Whether the user is root. Else the test is counted as skipped.
fn is_root(test: &str) -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if let (false, Some(log)) = (is_root, std::env::var_os("IOSONDE_SKIP_LOG")) {
        let log = fs::OpenOptions::new().append(true).create(true).open(log);
        writeln!(log.unwrap(), "{test}: it needs root").unwrap();
    }
    is_root
}

#[test]
fn run_without_writer_thread_is_stored_at_end() {
    /// A user without other processes: RLIMIT_NPROC counts all threads of a user.
    const ALONE: u32 = 61_234;
    if !is_root("a history without a thread") {
        return;
    }
    let scratch = Scratch::new("threadless");
    chown(&scratch.0, Some(ALONE), Some(ALONE)).unwrap();
    let written_meanwhile = |threads: &str| {
        let words = "fio --name=j --ioengine=sim --size=1m --rw=randread --rate_iops=20 \
                     --time_based --runtime=150";
        let words: Vec<&str> = words.split(' ').collect();
        let program = scratch.command(&words);
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--nproc={threads}:{threads}"))
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(&scratch.0)
            .env_remove("IOSONDE_STORE")
            .env_remove("IOSONDE_NO_SAVE")
            .env("XDG_DATA_HOME", scratch.path("data"))
            .uid(ALONE)
            .gid(ALONE);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", error(&output));
        assert!(text(&output.stdout).contains("read: IOPS=20"));
        let connection = Connection::open(scratch.store()).unwrap();
        let select = "SELECT count(*) FROM interval_block WHERE run = (SELECT max(id) FROM run)";
        let blocks: u32 = connection.query_row(select, [], |row| row.get(0)).unwrap();
        blocks > 0
    };
    // The main thread and the signal thread leave no room for a writer; a third allows it.
    assert!(!written_meanwhile("2"));
    assert!(written_meanwhile("3"));
    let listed = scratch.done(&["list", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    for result in listed["results"].as_array().unwrap() {
        assert!(result["finished_at_ms"].is_u64(), "{result}");
        assert!(!result["parts"][0]["figures"].as_array().unwrap().is_empty());
    }
    assert_eq!(listed["results"].as_array().unwrap().len(), 2);
}
