//! Foreign texts with all that a terminal, spreadsheet, browser or XML parser would interpret.

use crate::common::{NET, Scratch, error, text};
use iosonde_history::read_documents;
use iosonde_job::control_characters::{escape_control_characters, is_escaped};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Sets the title of a terminal, changes colours and direction, hides text, begins a formula, and
/// ends a script, an attribute and a CDATA section.
const HOSTILE: &str = "=1+1\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{200b}\u{7f}\r</script>\
    <script>document.title='owned'</script>\
    \"' onload=\"x]]>&,;";
/// The same for the key of a label, which must not contain `=`.
const KEY: &str = "@1+1\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{200b}\u{7f}\r</script><b>\"'|,;";
/// The escaped form, in all outputs that contain the text.
const SEEN: &str = "\\u001b]0;owned\\u0007\\u009b31m\\u202e\\u200b\\u007f";
/// The same before it is escaped.
const OBEYED: &str = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{200b}\u{7f}\r";

/// A hostile result of each kind.
static DOCUMENTS: LazyLock<Vec<(&str, Value)>> =
    LazyLock::new(|| documents(&Scratch::new("hostile-documents")));

/// Every command shows these documents without control characters.
#[test]
fn imported_results_print_no_control_characters() {
    let scratch = Scratch::new("hostile-results");
    for (kind, document) in DOCUMENTS.iter() {
        let file = format!("{kind}.json");
        fs::write(scratch.path(&file), document.to_string()).unwrap();
        let file = Path::new(&file);
        let id = imported(&scratch, file);
        let pivot = format!("{KEY} x machine");
        let words = [
            &["show", &id][..],
            &["show", &id, "--format", "json"],
            &["show", &id, "--format", "markdown"],
            &["export", &id],
            &["export", &id, "--format", "fio-json"],
            &["export", &id, "--format", "markdown"],
            &["list"],
            &["list", "--format", "json"],
            &["list", "--format", "markdown"],
            &["show", "--pivot", &pivot],
            &["show", "--pivot", &pivot, "--format", "markdown"],
            &["show", "--pivot", &pivot, "--format", "json"],
            &["compare", &id, &id],
            &["compare", &id, &id, "--format", "json"],
            &["compare", &id, &id, "--format", "markdown"],
        ];
        let outputs = words.map(|words| is_clean(&scratch, words));
        let shown: Vec<String> = outputs.iter().map(|output| text(&output.stdout)).collect();
        // Table and JSON of the result, list and its JSON. fio's results have only fio's JSON.
        let document = if *kind == "fio" { 4 } else { 3 };
        for index in [0, document, 6, 7] {
            assert!(
                shown[index].contains(SEEN),
                "{:?}: {}",
                words[index],
                shown[index]
            );
        }
        let exported: Value = serde_json::from_str(&shown[document]).unwrap();
        assert!(
            exported.to_string().contains(&in_json(OBEYED)),
            "the meaning is kept"
        );
        for (text, words) in shown.iter().zip(words).filter(|(text, _)| !text.is_empty()) {
            assert!(
                !words.contains(&"json") || serde_json::from_str::<Value>(text).is_ok(),
                "{words:?}: {text}"
            );
        }
        is_safe_page(&scratch, &id);
    }
}

/// Cells that look like formulas are quoted as text, and numbers stay numbers.
#[test]
fn csv_cells_of_imported_results_are_no_formulas() {
    let scratch = Scratch::new("hostile-cells");
    let mut cells = Vec::new();
    for (kind, document) in DOCUMENTS.iter() {
        let file = format!("{kind}.json");
        fs::write(scratch.path(&file), document.to_string()).unwrap();
        let id = imported(&scratch, Path::new(&file));
        let pivot = format!("{KEY} x machine");
        for words in [
            &["show", &id, "--format", "csv"][..],
            &["export", &id, "--series"],
            &["compare", &id, &id, "--format", "csv"],
            &["show", "--pivot", &pivot, "--format", "csv"],
            &["list", "--format", "csv"],
        ] {
            let output = is_clean(&scratch, words);
            cells.extend(cells_of(&text(&output.stdout)));
        }
    }
    let suite = suite(&scratch);
    let output = is_clean(&scratch, &["run", &suite, NET, "--format", "csv"]);
    cells.extend(cells_of(&text(&output.stdout)));
    let output = is_clean(&scratch, &["limits", "--format", "csv"]);
    cells.extend(cells_of(&text(&output.stdout)));
    for cell in &cells {
        let is_number = cell.parse::<f64>().is_ok();
        assert!(
            is_number || !cell.starts_with(['=', '+', '-', '@', '\t', '\r']),
            "{cell:?}"
        );
    }
    let hostile = cells.iter().filter(|cell| cell.starts_with("'=1+1"));
    assert!(hostile.count() > 20, "{cells:?}");
}

/// Names on the command line and in job files, in errors and results.
#[test]
fn job_and_file_names_are_escaped_on_terminal() {
    let scratch = Scratch::new("hostile-names");
    scratch.file("hostile.fio", &format!("[a]\nrw={HOSTILE}\n{HOSTILE}=1\n"));
    let name = format!("--name={HOSTILE}");
    let no_slash = HOSTILE.replace('/', "");
    let (file, label) = (format!("--filename={no_slash}"), format!("k={HOSTILE}"));
    fs::create_dir(scratch.path(&no_slash)).unwrap();
    let sim = [
        "--ioengine=sim",
        "--sim=parallel=1,read_us=10ms",
        "--size=1g",
        "--runtime=2",
        "--time_based",
    ];
    let suite = suite(&scratch);
    let about = [
        &["fio", &name, "--rw=nonsense"][..],
        &["fio", &name, &file, "--rw=read"],
        &["fio", HOSTILE],
        &["fio", "hostile.fio"],
        &["--label", &label, "fio", "hostile.fio"],
        &["fio", "--cmdhelp", HOSTILE],
        &["fio", &name, "--showcmd", "--size=1m"],
        &["probe", HOSTILE],
        &["probe", &no_slash, "--size", HOSTILE],
        &["sweep", HOSTILE],
        &["sweep", &no_slash, "--rw", HOSTILE, "--bs", HOSTILE],
        &["load", "--slo", HOSTILE, "--rates", HOSTILE],
        &["run", HOSTILE],
        &["run", &suite, "--check", NET],
        &["run", &suite, HOSTILE],
        &["list", "--label", HOSTILE],
        &["show", HOSTILE],
        &["compare", HOSTILE, HOSTILE],
        &["import", HOSTILE],
        &["report", HOSTILE],
        &["rm", HOSTILE],
        &["limits", HOSTILE],
        &["watch", HOSTILE],
        &[HOSTILE],
        &["doctor", HOSTILE],
    ];
    let mut seen = 0;
    for words in about {
        let shown = on_terminal(&scratch, words, "dumb");
        assert_clean(&shown, words);
        // clap removes sequences that look like escape sequences.
        seen += usize::from(shown.contains("owned") || shown.contains("\\u009b31m"));
    }
    assert!(
        seen > about.len() / 2,
        "{seen} of {} show the name",
        about.len()
    );
    // A terminal gets fio's output escaped; a program gets it as fio writes it.
    for format in ["normal", "json", "terse"] {
        let format = format!("--output-format={format}");
        let words = [&["fio", &name, &format][..], &sim].concat();
        let shown = on_terminal(&scratch, &words, "dumb");
        let shown = shown.replace('\r', "");
        assert!(shown.contains("\\u009b31m"), "{words:?}: {shown}");
        assert_clean(&shown, &words);
        let piped = scratch.done(&words);
        assert!(piped.contains("\u{9b}31m\u{202e}"), "{words:?}: {piped}");
    }
}

/// Colours and redrawn lines are iosonde's own, but the text in them is not.
#[test]
fn live_display_escapes_foreign_control_characters() {
    let scratch = Scratch::new("hostile-live");
    scratch.file("hostile.fio", &format!("[a]\nrw={HOSTILE}\n"));
    let suite = suite(&scratch);
    let name = format!("--name={HOSTILE}");
    let sim = format!("{NET},seed=1");
    for words in [
        &["fio", "hostile.fio"][..],
        &["fio", HOSTILE],
        &[HOSTILE],
        &["probe", HOSTILE],
        &["run", &suite, &sim],
        &[
            "fio",
            &name,
            "--ioengine=null",
            "--size=1g",
            "--runtime=2",
            "--time_based",
            "--eta=always",
        ],
    ] {
        let shown = on_terminal(&scratch, words, "xterm-256color");
        for obeyed in [
            "\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}", "\u{200b}", "\u{7f}",
        ] {
            assert!(
                !shown.contains(obeyed),
                "{obeyed:?} in {words:?}: {shown:?}"
            );
        }
    }
    let plain = on_terminal(&scratch, &["probe", "none/such"], "xterm-256color");
    assert!(
        plain.contains("\u{1b}[1;31merror"),
        "an error has colours: {plain:?}"
    );
}

#[test]
fn junit_of_hostile_names_is_valid_xml() {
    let scratch = Scratch::new("hostile-junit");
    let suite = suite(&scratch);
    let label = format!("k={HOSTILE}");
    let output = scratch.run(&["run", &suite, NET, "--junit", "out.xml", "--label", &label]);
    assert_eq!(output.status.code(), Some(11), "{}", error(&output));
    let junit = fs::read_to_string(scratch.path("out.xml")).unwrap();
    assert_clean(&junit, &["junit"]);
    let document = roxmltree::Document::parse(&junit).unwrap();
    let elements = |name: &'static str| {
        document
            .descendants()
            .filter(move |node| node.has_tag_name(name))
    };
    let values: Vec<&str> = elements("property")
        .filter_map(|node| node.attribute("value"))
        .collect();
    // A parser reads a line break in an attribute as a space, so there must be none.
    assert!(
        values.contains(&&*escape_control_characters(HOSTILE)),
        "{values:?}"
    );
    assert!(elements("testcase").count() > 0);
    assert_eq!(elements("script").count(), 0);
    let attributes = elements("testcase").flat_map(|node| node.attributes());
    assert!(
        attributes
            .into_iter()
            .all(|attribute| ["classname", "name", "time"].contains(&attribute.name()))
    );
}

/// Returns a suite with hostile texts only.
fn suite(scratch: &Scratch) -> String {
    // Strings of JSON are valid in TOML, except for DEL.
    let quoted = |text: &str| escape_control_characters(&in_json(text)).into_owned();
    let hostile = quoted(HOSTILE);
    scratch.file(
        "suite.toml",
        &format!(
            "about = \"{hostile}\"\n[labels]\n\"{hostile}\" = \"{hostile}\"\n[[workload]]\nname \
             = \"{hostile}\"\n\
             options = {{ size = \"1g\", bs = \"4k\", direct = 1, time_based = true, runtime = 2, \
             rw = \"randread\" }}\n\
             axes = {{ iodepth = [1, 8] }}\nexpect = [\"max_iops >= 1M\"]\n"
        ),
    );
    "suite.toml".to_owned()
}

/// The text as between the quotes of JSON.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns a result of each kind, with a hostile text wherever any text is accepted.
fn documents(scratch: &Scratch) -> Vec<(&'static str, Value)> {
    let pts = "sim:seed=1,capacity=64m,read_us=2ms,write_us=1ms,parallel=4,link_bw=40m";
    let made = [
        (
            "probe",
            format!("probe {NET} --quick --no-save --format json"),
        ),
        (
            "sweep",
            format!("sweep {NET} --rw randread --iodepth 1,2 --runtime 1 --no-save --format json"),
        ),
        (
            "load",
            format!(
                "load {NET} --rates 500 --runtime 1 --ramp 1 --slo p99=10ms --no-save --format json"
            ),
        ),
        (
            "pts",
            format!(
                "pts throughput {pts} --size 64m --time-scale 0.01 --purge discard --no-save \
                 --format json"
            ),
        ),
    ];
    let mut documents: Vec<(&str, String)> = made
        .iter()
        .map(|(kind, words)| (*kind, scratch.done(&words.split(' ').collect::<Vec<_>>())))
        .collect();
    // One result is of this machine, with its file, device and events.
    let jobs = [
        (
            "run",
            "--ioengine=sim --sim=parallel=1,read_us=10ms --rw=randread --size=1g --runtime=3",
        ),
        (
            "here",
            "--ioengine=psync --filename=file --rw=randwrite --size=1m --bs=4k --runtime=1",
        ),
    ];
    for (kind, job) in jobs {
        let words = format!("--label k=v fio --name=j --time_based {job}");
        scratch.done(&words.split(' ').collect::<Vec<_>>());
        documents.push((kind, scratch.done(&["export", "latest"])));
    }
    documents.push(("fio", fs::read_to_string(scratch.fio_json(1)).unwrap()));
    let documents = documents.into_iter();
    documents
        .map(|(kind, text)| (kind, hostile(kind, serde_json::from_str(&text).unwrap())))
        .collect()
}

/// Replaces every text of a document that may have any content.
fn hostile(kind: &str, mut document: Value) -> Value {
    let mut places = Vec::new();
    texts(&document, "", &mut places);
    places.sort();
    places.dedup();
    replace_where_accepted(&places, &mut document);
    if let Some(labels) = document.get_mut("labels") {
        labels[KEY] = HOSTILE.into();
    }
    if let Some(notes) = document.get_mut("notes") {
        *notes = vec![HOSTILE].into();
    }
    let replaced = document.to_string().matches("owned").count();
    let least = if kind == "fio" { 2 } else { 4 };
    assert!(
        replaced >= least,
        "{kind}: only {replaced} texts could be replaced"
    );
    document
}

/// Collects the paths of all texts, with `*` for indices.
fn texts(value: &Value, place: &str, places: &mut Vec<String>) {
    match value {
        Value::String(_) => places.push(place.to_owned()),
        Value::Array(elements) => elements
            .iter()
            .for_each(|one| texts(one, &format!("{place}/*"), places)),
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, one)| texts(one, &format!("{place}/{name}"), places));
        }
        _ => {}
    }
}

/// Replaces the texts at these paths, except those that the import rejects. The reader of `import`
/// decides, without a start of the program for each attempt. The tests import the result.
fn replace_where_accepted(places: &[String], document: &mut Value) {
    let mut candidate = document.clone();
    replace(&mut candidate, "", places);
    if read_documents(&candidate.to_string()).is_ok() {
        *document = candidate;
    } else if let (left, right @ [_, ..]) = places.split_at(places.len() / 2)
        && !left.is_empty()
    {
        replace_where_accepted(left, document);
        replace_where_accepted(right, document);
    }
}

fn replace(value: &mut Value, place: &str, places: &[String]) {
    match value {
        Value::String(text) if places.iter().any(|one| one == place) => HOSTILE.clone_into(text),
        Value::Array(elements) => elements
            .iter_mut()
            .for_each(|one| replace(one, &format!("{place}/*"), places)),
        Value::Object(members) => {
            members
                .iter_mut()
                .for_each(|(name, one)| replace(one, &format!("{place}/{name}"), places));
        }
        _ => {}
    }
}

/// Imports a document, and returns its id.
fn imported(scratch: &Scratch, file: &Path) -> String {
    let label = format!("{KEY}={HOSTILE}");
    let output = is_clean(
        scratch,
        &["import", file.to_str().unwrap(), "--label", &label],
    );
    assert!(output.status.success(), "{}", error(&output));
    let line = text(&output.stdout);
    line.split(' ').next().unwrap().to_owned()
}

/// Runs a command and checks its outputs for control characters.
fn is_clean(scratch: &Scratch, words: &[&str]) -> Output {
    let output = scratch.run(words);
    for bytes in [&output.stdout, &output.stderr] {
        assert_clean(std::str::from_utf8(bytes).unwrap(), words);
    }
    output
}

fn assert_clean(shown: &str, words: &[&str]) {
    let found = shown
        .char_indices()
        .find(|(_, character)| is_escaped(*character));
    if let Some((at, character)) = found {
        let lines = shown[..at].lines().count();
        panic!("{character:?} in line {lines} of {words:?}: {shown:?}");
    }
}

/// Checks that a report has no additional scripts, and that its document can be parsed.
fn is_safe_page(scratch: &Scratch, id: &str) {
    let page = text(&is_clean(scratch, &["report", id, "--title", HOSTILE]).stdout);
    let (_, rest) = page.split_once("id=\"results\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    let document: Value = serde_json::from_str(json).unwrap();
    assert_eq!(document["title"], HOSTILE);
    assert!(!json.contains('<'), "{json}");
    assert!(!page.contains("<script>document.title"));
}

/// Parses the cells of CSV according to RFC 4180.
fn cells_of(csv: &str) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = csv.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' => is_quoted = !is_quoted,
            ',' | '\n' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    cells
}

/// Returns all that a command sends to a terminal, with the line breaks of a program.
fn on_terminal(scratch: &Scratch, words: &[&str], terminal: &str) -> String {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let program = quoted(env!("CARGO_BIN_EXE_iosonde"));
    scratch.file(
        "command.sh",
        &format!("stty rows 40 cols 200; exec {program} {}", words.join(" ")),
    );
    let mut command = Command::new("script");
    command
        .args([
            "--quiet",
            "--echo",
            "never",
            "--command",
            "sh command.sh",
            "/dev/null",
        ])
        .current_dir(&scratch.0)
        .env("TERM", terminal)
        .env("HOME", &scratch.0)
        .env("XDG_DATA_HOME", scratch.path("data"));
    for name in ["IOSONDE_STORE", "IOSONDE_NO_SAVE"] {
        command.env_remove(name);
    }
    match terminal {
        "dumb" => command.env("NO_COLOR", "1"),
        _ => command.env_remove("NO_COLOR"),
    };
    let output = command.output().expect("script, of util-linux");
    text(&output.stdout).replace("\r\n", "\n")
}
