//! JSON documents of released versions, which every later version reads.
//!
//! `crates/history/tests/documents/VERSION` has one document of each kind. `UPDATE_DOCUMENTS=1`
//! writes those of the present version that are missing; a kept document never changes.

use crate::common::{JOB, NET, SUITE, Scratch, error, text};
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../history/tests/documents");
/// Documents that every version keeps.
const NAMES: [&str; 6] = [
    "load.json",
    "probe.json",
    "pts.json",
    "run.json",
    "suite.json",
    "sweep.json",
];
/// A device whose runs are short.
const PTS_DEVICE: &str = "sim:seed=1,capacity=64m,read_us=2ms,write_us=1ms,parallel=4,link_bw=40m";

/// Measures a simulated device, and returns the document.
fn measure(scratch: &Scratch, name: &str) -> String {
    let json = ["--no-save", "--format", "json"];
    let with = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let words = match name {
        "load.json" => with("load DEVICE --rw randread --rates 100,400 --runtime 4 --ramp 1"),
        "probe.json" => with("probe DEVICE --quick"),
        "pts.json" => with("pts throughput PTS --size 64m --time-scale 0.01 --purge discard"),
        "suite.json" => with("run suite.toml DEVICE --var runtime=4"),
        "sweep.json" => with("sweep DEVICE --rw randread --bs 4k --iodepth 1,8 --runtime 4"),
        _ => {
            scratch.done(&JOB);
            return scratch.done(&["export", "latest", "--format", "json"]);
        }
    };
    let words: Vec<&str> = words
        .iter()
        .map(|word| match word.as_str() {
            "DEVICE" => NET,
            "PTS" => PTS_DEVICE,
            word => word,
        })
        .chain(json)
        .collect();
    let output = scratch.run(&words);
    // The suite misses its expectations.
    let status = output.status.code();
    assert!(
        matches!(status, Some(0 | 11)),
        "{words:?}: {}",
        error(&output)
    );
    text(&output.stdout)
}

/// Writes the missing documents of the present version.
fn write_missing() {
    let scratch = Scratch::new("kept-documents-written");
    scratch.file("suite.toml", SUITE);
    let folder = Path::new(FOLDER).join(env!("CARGO_PKG_VERSION"));
    fs::create_dir_all(&folder).unwrap();
    for name in NAMES {
        let path = folder.join(name);
        if !path.exists() {
            fs::write(path, measure(&scratch, name)).unwrap();
        }
    }
}

/// Paths in a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn kept_documents_of_all_versions_are_read() {
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        write_missing();
    }
    let present = Path::new(FOLDER).join(env!("CARGO_PKG_VERSION"));
    assert!(
        present.is_dir(),
        "no documents of this version are kept: run UPDATE_DOCUMENTS=1 cargo test --package \
         iosonde --test program kept_documents"
    );
    for version in entries(Path::new(FOLDER)) {
        let documents = entries(&version);
        for name in NAMES {
            let path = version.join(name);
            assert!(documents.contains(&path), "{} is missing", path.display());
        }
        for path in documents {
            let scratch = Scratch::new("kept-documents");
            let name = path.to_str().unwrap();
            scratch.done(&["import", name]);
            assert_eq!(scratch.listed().len(), 1, "{name}");
            let shown = scratch.done(&["show", "latest"]);
            assert!(!shown.trim().is_empty(), "{name}");
            let page = scratch.done(&["report", name]);
            assert!(page.contains("</html>"), "{name}");
        }
    }
}
