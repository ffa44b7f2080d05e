//! Reports from outside: what may be named, and what is said of what may not.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A directory of its own for each test, with a history.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("iosonde-report-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonde"));
        command
            .args(words)
            .current_dir(&self.0)
            .env_remove("IOSONDE_STORE")
            .env_remove("IOSONDE_NO_SAVE")
            .env("HOME", &self.0)
            .env("XDG_DATA_HOME", self.0.join("data"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs what must succeed, and gives its standard output.
    fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", error(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The document in a page.
fn document(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"results\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

fn places(page: &str) -> Vec<String> {
    let studies = document(page)["studies"].clone();
    let target = |study: &serde_json::Value| study["target"].as_str().unwrap().to_owned();
    studies.as_array().unwrap().iter().map(target).collect()
}

#[test]
fn stored_results_are_named_by_id_run_or_label() {
    let scratch = Scratch::new("stored");
    for (device, label) in [("sim:hdd", "disk=old"), ("sim:sata-ssd", "disk=new")] {
        scratch.done(&["probe", device, "--quick", "--label", label]);
    }
    let old = scratch.done(&["report", "disk=old"]);
    assert_eq!(places(&old), ["sim:hdd"]);
    let both = scratch.done(&["report", "disk=old", "disk=new"]);
    assert_eq!(places(&both), ["sim:hdd", "sim:sata-ssd"]);
    let listed = scratch.done(&["list", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let text = listed.to_string();
    let (_, id) = text.split_once("\"id\":\"").unwrap();
    let (id, _) = id.split_once('"').unwrap();
    assert_eq!(places(&scratch.done(&["report", id])).len(), 1);
    // One run of a study is a run without findings.
    let one = document(&scratch.done(&["report", &format!("{id}.random_read")]));
    assert_eq!(one["runs"].as_array().unwrap().len(), 1);
    assert!(one["studies"].as_array().unwrap().is_empty());
}

#[test]
fn a_probe_can_be_piped_into_a_report() {
    let scratch = Scratch::new("piped");
    let probe = scratch.done(&[
        "probe",
        "sim:hdd",
        "--quick",
        "--no-save",
        "--format",
        "json",
    ]);
    fs::write(scratch.0.join("probe.json"), &probe).unwrap();
    let output = scratch
        .command(&[
            "report",
            "-",
            "--output",
            "report.html",
            "--title",
            "A disk",
        ])
        .stdin(Stdio::from(
            fs::File::open(scratch.0.join("probe.json")).unwrap(),
        ))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", error(&output));
    assert!(output.stdout.is_empty());
    let piped = fs::read_to_string(scratch.0.join("report.html")).unwrap();
    assert_eq!(document(&piped)["title"], "A disk");
    let named = scratch.done(&["report", "probe.json", "--title", "A disk"]);
    assert_eq!(places(&named), places(&piped));
}

#[test]
fn what_is_no_result_ends_with_status_2_and_writes_nothing() {
    let scratch = Scratch::new("wrong");
    fs::write(scratch.0.join("text"), "hello").unwrap();
    for (words, told) in [
        (
            ["report", "nothing", "-o", "r.html"],
            "neither a file, nor a label, nor the id",
        ),
        (["report", "text", "-o", "r.html"], "text: "),
        (
            ["report", "text", "--expect", "no-such-product"],
            "no limits of `no-such-product` are known",
        ),
    ] {
        let output = scratch.run(&words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            error(&output)
        );
        assert!(error(&output).contains(told), "{}", error(&output));
        assert!(output.stdout.is_empty() && !scratch.0.join("r.html").exists());
    }
}
