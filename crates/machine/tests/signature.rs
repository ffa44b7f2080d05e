//! Signatures written by real tools, compared with the output of blkid(8). `signatures/capture.py`
//! makes the captures.

use iosonde_machine::signature::{Signature, probe};
use std::fs;
use std::path::{Path, PathBuf};

/// A captured device and blkid's output for it.
#[derive(Default)]
struct Capture {
    bytes: Vec<u8>,
    kind: String,
    label: Option<String>,
    uuid: Option<String>,
}

impl Capture {
    fn read(path: &Path) -> Self {
        let mut capture = Self::default();
        for line in fs::read_to_string(path)
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let (key, value) = line.split_once(' ').unwrap();
            match key {
                "size" => capture.bytes = vec![0; value.parse().unwrap()],
                "type" => capture.kind = value.to_owned(),
                "label" => capture.label = Some(value.to_owned()),
                "uuid" => capture.uuid = Some(value.to_owned()),
                "at" => capture.fill(value),
                _ => panic!("{}: {line:?}", path.display()),
            }
        }
        capture
    }

    fn fill(&mut self, text: &str) {
        let (at, hex) = text.split_once(' ').unwrap();
        let at: usize = at.parse().unwrap();
        for (index, pair) in hex.as_bytes().chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).unwrap();
            self.bytes[at + index] = u8::from_str_radix(pair, 16).unwrap();
        }
    }

    fn probe(&self) -> Vec<Signature> {
        probe(self.bytes.as_slice(), self.bytes.len() as u64).unwrap()
    }
}

/// Formats whose label is among their files, where the probe does not read.
const LABEL_IN_DIRECTORY: [&str; 3] = ["exfat", "ntfs", "udf"];

fn captures() -> Vec<(String, PathBuf)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signatures");
    let paths = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut captures: Vec<(String, PathBuf)> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "sig"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    captures.sort();
    captures
}

#[test]
fn captured_signatures_match_blkid() {
    let captures = captures();
    assert!(captures.len() >= 30, "captures are missing: {captures:?}");
    for (name, path) in captures {
        let capture = Capture::read(&path);
        let found = capture.probe();
        let kinds: Vec<&str> = found.iter().map(|signature| signature.kind).collect();
        assert!(
            kinds.iter().all(|kind| *kind == capture.kind),
            "{name}: found {kinds:?}, not {}",
            capture.kind
        );
        let signature = found
            .first()
            .unwrap_or_else(|| panic!("{name}: nothing found"));
        if signature.label.is_some() || !LABEL_IN_DIRECTORY.contains(&signature.kind) {
            assert_eq!(signature.label, capture.label, "{name}");
        }
        // Some identifiers are composed only by blkid (from dates, from checksums).
        if signature.uuid.is_some() {
            assert_eq!(signature.uuid, capture.uuid, "{name}");
        }
    }
}

#[test]
fn gpt_is_found_at_start_and_end() {
    let (_, path) = captures()
        .into_iter()
        .find(|(name, _)| name == "gpt")
        .unwrap();
    let mut capture = Capture::read(&path);
    let size = capture.bytes.len() as u64;
    let offsets = |found: Vec<Signature>| {
        found
            .iter()
            .map(|signature| signature.offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(offsets(capture.probe()), [512, size - 512]);
    // dd over the start of the device, as users do before a benchmark.
    capture.bytes[..4096].fill(0);
    assert_eq!(offsets(capture.probe()), [size - 512]);
    assert_eq!(capture.probe()[0].uuid, capture.uuid);
}
