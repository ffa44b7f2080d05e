//! Output of `iosonde fio` over simulated devices.

use super::*;

fn parsed(words: &str) -> iosonde_job::parse::ParsedCommand {
    let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    iosonde_job::parse(&words, &iosonde_job::env::FakeEnv::new()).unwrap()
}

fn parse_formats(words: &str) -> Formats {
    Formats::asked(&parsed(&format!("--name=a --size=1m {words}")).command)
}

#[test]
fn output_formats_follow_the_command_line() {
    assert_eq!(parse_formats(""), Formats::default());
    let both = parse_formats("--output-format=normal,json");
    assert!(both.normal && both.json.is_some() && both.terse.is_none());
    let minimal = parse_formats("--minimal --terse-version=5");
    assert_eq!(
        minimal.terse,
        iosonde_result::fio::terse::TerseVersion::from_number(5)
    );
    assert!(!minimal.normal);
    let appended = parse_formats("--append-terse");
    assert!(appended.normal && appended.terse.is_some());
}

#[test]
fn version_line_is_that_of_fio() {
    assert_eq!(
        action_text(&Action::Version).unwrap().unwrap(),
        "fio-3.33\n"
    );
    assert!(action_text(&Action::CommandHelp(Some("iodpeth".into()))).is_err());
    assert_eq!(action_text(&Action::Run).unwrap(), None);
}

/// Runs a job on a simulated device. Fields that differ between runs get fixed values.
fn ran(words: &str) -> (RunResult, Formats) {
    let parsed = parsed(words);
    let mut session = LocalRunner::default().open();
    let mut result = session.run(&parsed.plan, &mut ()).unwrap();
    result.program = "iosonde".to_owned();
    result.started_at_ms = 0;
    result.elapsed_ns = 2_000_000_000;
    result.host = Default::default();
    for worker in &mut result.workers {
        worker.tid = 4242;
        worker.started_at_ms = 0;
        worker.cpu = Default::default();
    }
    (result, Formats::asked(&parsed.command))
}

/// The document without the lines that hold the time of day, which depends on the time zone.
fn printed(words: &str) -> String {
    let (result, formats) = ran(words);
    let text = String::from_utf8(document(&result, &formats).unwrap()).unwrap();
    let is_time = |line: &&str| line.contains("\"time\" :") || line.contains("\"timestamp");
    let lines = text.lines().filter(|line| !is_time(line));
    let lines = lines.map(|line| match line.split_once(": pid=4242: ") {
        Some((before, _)) => format!("{before}: pid=4242: (date)"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

const JOB: &str = "--name=a --ioengine=sim --sim=sata-ssd --rw=randrw --rwmixread=70 --bs=4k \
                   --iodepth=8 --size=1g --time_based --runtime=2";

#[test]
fn normal_output_matches_snapshot() {
    insta::assert_snapshot!("normal", printed(JOB));
}

#[test]
fn terse_output_matches_snapshot() {
    insta::assert_snapshot!("terse", printed(&format!("{JOB} --minimal")));
}

#[test]
fn json_output_matches_snapshot() {
    insta::assert_snapshot!("json", printed(&format!("{JOB} --output-format=json")));
}

/// Two jobs in one group, then trims in a group of their own.
const GROUPS: &str = "--group_reporting --ioengine=sim --sim=sata-ssd --bs=4k --iodepth=4 \
                      --size=1g --number_ios=2000 \
                      --name=a --rw=randwrite --numjobs=2 --name=b --rw=randtrim --stonewall \
                      --new_group";

#[test]
fn group_reporting_with_trims_matches_snapshot() {
    insta::assert_snapshot!("groups_normal", printed(GROUPS));
    insta::assert_snapshot!("groups_terse", printed(&format!("{GROUPS} --minimal")));
    let json = format!("{GROUPS} --output-format=json+");
    insta::assert_snapshot!("groups_json_plus", printed(&json));
}

#[test]
fn terse_versions_match_snapshot() {
    let of = |version: u32| printed(&format!("{JOB} --minimal --terse-version={version}"));
    insta::assert_snapshot!("terse_versions", [2, 3, 4, 5].map(of).join("\n"));
}

#[test]
fn errors_of_jobs_end_with_status_1() {
    let (mut result, _) = ran(JOB);
    assert!(conclude(&result, &StopSignal::default()).is_ok());
    result.workers[0].error = Some(iosonde_result::run::IoFailure {
        errno: 5,
        operation: "read".to_owned(),
        file: Some("/data/a.0.0".to_owned()),
        offset: Some(4096),
        message: "EIO".to_owned(),
    });
    let failure = conclude(&result, &StopSignal::default()).unwrap_err();
    assert_eq!(failure.status(), 1);
    assert_eq!(failure.text(false), "error: a: EIO");
}

#[test]
fn status_interval_reports_have_eta() {
    let words = "--name=a --ioengine=sim --size=1g --rw=randread --time_based --runtime=4 \
                 --status-interval=1 --output-format=json";
    let parsed = parsed(words);
    let path = std::env::temp_dir().join(format!("iosonde-eta-{}", std::process::id()));
    let mut output = Output::open(Some(&path)).unwrap();
    let formats = Formats::asked(&parsed.command);
    let mut live = FioLive::new(&parsed.plan, &parsed.command, formats, &mut output);
    let mut session = LocalRunner::default().open();
    session.run(&parsed.plan, &mut live).unwrap();
    live.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let documents = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
    let left = documents.map(|document| document.unwrap()["jobs"][0]["eta"].as_u64().unwrap());
    assert_eq!(left.collect::<Vec<_>>(), [3, 2, 1, 0]);
}
