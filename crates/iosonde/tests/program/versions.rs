//! Histories of older versions, and results that are exported and imported again.

use crate::common::{JOB, Scratch, error, integrity, text};
use rusqlite::Connection;
use std::fs;
use std::path::Path;

/// The tables, as in `sqlite_schema`.
fn tables(store: &Path) -> Vec<String> {
    let connection = Connection::open(store).unwrap();
    let mut select = connection
        .prepare("SELECT name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY name")
        .unwrap();
    let found = select.query_map([], |row| row.get(0)).unwrap();
    found.map(Result::unwrap).collect()
}

fn version(store: &Path) -> u32 {
    let connection = Connection::open(store).unwrap();
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    version.unwrap()
}

#[test]
fn histories_of_all_versions_are_migrated() {
    let scratch = Scratch::new("versions-old");
    scratch.run(&["import", scratch.fio_json(1).to_str().unwrap()]);
    let newest = version(&scratch.store());
    for old in 1..=newest {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../history/tests/histories/version-{old}.db"));
        assert!(kept.exists(), "keep a history of version {old}: {kept:?}");
        fs::remove_file(scratch.store()).unwrap();
        fs::copy(&kept, scratch.store()).unwrap();
        assert_eq!(version(&scratch.store()), old);
        let ids: Vec<String> = scratch
            .listed()
            .iter()
            .map(|line| line[..10].to_owned())
            .collect();
        assert_eq!(ids.len(), 2, "{ids:?}");
        for id in &ids {
            for words in [
                &["show", id][..],
                &["export", id, "--format", "fio-json"],
                &["report", id],
            ] {
                let output = scratch.run(words);
                assert!(output.status.success(), "{words:?}: {}", error(&output));
            }
        }
        let labelled = scratch.run(&["list", "--label", "disk=new", "--format", "csv"]);
        assert_eq!(text(&labelled.stdout).lines().count(), 2);
        let words = ["import", scratch.fio_json(2).to_str().unwrap()].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(scratch.run(&words).status.success());
        assert_eq!(version(&scratch.store()), newest);
        assert_eq!(integrity(&scratch.store()), "ok");
        let fresh = scratch.path(&format!("fresh-{old}.db"));
        let store = ["--store", fresh.to_str().unwrap()];
        scratch.run(&[&words[..], &store].concat());
        assert_eq!(tables(&scratch.store()), tables(&fresh), "version {old}");
    }
}

/// Parses an exported CSV of a job: subject, measure and value.
fn figures_of_csv(csv: &str) -> Vec<(String, String, f64)> {
    let rows = csv.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let name = format!("{} {}", cells[0], cells[5]);
        (name, cells[6].to_owned(), cells[7].parse().unwrap())
    });
    rows.collect()
}

#[test]
fn export_formats_have_equal_figures() {
    let scratch = Scratch::new("versions-formats");
    let noisy = "--sim=parallel=4,read_us=1ms,noise=0.02,seed=3";
    let mut job = JOB.to_vec();
    job[3] = noisy;
    assert!(scratch.run(&job).status.success());
    let id = scratch.listed()[0][..10].to_owned();
    let export = |id: &str, format: &str, more: &[&str]| {
        let words = [&["export", id, "--format", format][..], more].concat();
        let output = scratch.run(&words);
        assert!(output.status.success(), "{format}: {}", error(&output));
        text(&output.stdout)
    };
    let own = figures_of_csv(&export(&id, "csv", &[]));
    assert!(own.len() >= 6, "{own:?}");
    // Exports from another history, as JSON of iosonde and of fio.
    for format in ["json", "fio-json"] {
        let file = format!("{format}.json");
        fs::write(scratch.path(&file), export(&id, format, &[])).unwrap();
        let store = ["--store", &format!("{format}.db")];
        let imported = scratch.run(&[&["import", &file][..], &store].concat());
        assert!(imported.status.success(), "{}", error(&imported));
        let other = text(&imported.stdout)[..10].to_owned();
        let again = figures_of_csv(&export(&other, "csv", &store));
        for (name, measure, value) in &own {
            let found = again
                .iter()
                .find(|each| (&each.0, &each.1) == (name, measure));
            let Some((.., found)) = found else {
                // fio's JSON has percentiles of one latency only.
                let is_lat = measure.starts_with("lat_p");
                assert!(format == "fio-json" && is_lat, "{format}: no {measure}");
                continue;
            };
            // fio's JSON has rates with six decimals, and percentiles from coarser buckets.
            let tolerance = if format == "json" { 0.0 } else { 0.01 };
            let apart = (found / value - 1.0).abs();
            assert!(
                apart <= tolerance,
                "{format} {measure}: {found}, not {value}"
            );
        }
    }
    let markdown = export(&id, "markdown", &[]);
    let table = markdown.lines().filter(|line| line.starts_with("| read"));
    assert_eq!(table.count(), own.len(), "{markdown}");
}
