//! Programs that start fio: what they read of it must not depend on which program runs.

use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Program, Scratch, ours};

/// Jobs that iosonde has advice on, and a word of the advice.
const ADVISED: [(&str, &str); 4] = [
    ("--name=job --ioengine=psync --iodepth=4", "depth is 1"),
    ("--name=job --ioengine=posixaio --iodepth=4", "posixaio"),
    (
        "--bssplit=4k/50:8k/50 --name=job --bsrange=4k-8k",
        "bssplit",
    ),
    ("--name=job --bs=4k --invalidate=0 --io_size=20m", "cache"),
];

#[test]
fn advice_in_any_format_leaves_stderr_empty() {
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 1 << 20);
    for (job, _) in ADVISED {
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
    for (job, word) in ADVISED {
        let line = format!("{job} --filename=data --size=1m --rw=read");
        let run = |format: &str| {
            let run = Program::Iosonde.line(&scratch, &line);
            run.and(&format!("--output-format={format}")).ok().stdout
        };
        let normal = run("normal");
        let (_, below) = normal.split_once("Run status group 0").expect("a report");
        let note = below.lines().find(|line| line.contains(word));
        assert!(
            note.is_some_and(|note| note.starts_with("note: ")),
            "{normal}"
        );
        let json: serde_json::Value = serde_json::from_str(&run("json")).expect("JSON");
        let ours = &json["iosonde"];
        let advice = format!("{} {}", ours["notes"], ours["verdicts"]);
        assert!(advice.contains(word), "{ours}");
        assert!(!run("terse").contains("note:"));
    }
}

#[test]
fn parsing_alone_prints_advice_on_stdout() {
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
fn two_percent_signs_mean_one() {
    let scratch = Scratch::shared();
    lay_out(&scratch.work().join("data"), 4 << 20);
    scratch.write(
        "percent.fio",
        "[job]\nfilename=data\nrw=read\nsize=100%%\noffset=50%%\nsteadystate=iops:10%%\nss_dur=60\n",
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
