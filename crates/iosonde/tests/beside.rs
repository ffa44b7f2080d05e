//! What a probe of two targets says of the pair is what `compare` says of it.

mod common;

use common::Scratch;
use serde_json::Value;

/// Two devices whose rates vary, one of them a little slower.
const FIRST: &str =
    "sim:read_us=500,write_us=300,parallel=4,noise=0.1,noise_rho=0.5,noise_period_us=100ms,seed=1";
const SECOND: &str =
    "sim:read_us=600,write_us=300,parallel=4,noise=0.1,noise_rho=0.5,noise_period_us=100ms,seed=2";

/// Lines that hold a figure and its verdict, their blanks put together.
fn rows(text: &str) -> Vec<String> {
    const VERDICTS: [&str; 4] = ["faster", "slower", "no difference shown", "undecided"];
    let is_row = |line: &&str| {
        line.starts_with(' ') && VERDICTS.iter().any(|verdict| line.ends_with(verdict))
    };
    let joined = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().filter(is_row).map(joined).collect()
}

#[test]
fn rows_side_by_side_are_those_of_compare() {
    let scratch = Scratch::new("beside");
    let probed = scratch.done(&["probe", FIRST, SECOND, "--runtime", "4s"]);
    let (_, beside) = probed.split_once("Side by side").unwrap();
    let listed = scratch.listed();
    let id = |line: &String| line.split(',').next().unwrap().to_owned();
    // The newest comes first.
    let [b, a] = [0, 1].map(|index| id(&listed[index]));
    let shown = scratch.done(&["show", &a, "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let [a, b] = match shown["probes"][0]["target"] == FIRST {
        true => [a, b],
        false => [b, a],
    };
    let compared = scratch.done(&["compare", &a, &b]);
    let all = rows(&compared);
    let headlines = rows(beside);
    assert!(headlines.len() >= 7, "{beside}");
    for row in &headlines {
        assert!(all.contains(row), "{row}\n{compared}");
    }
    let total = format!("of {} figures; `iosonde compare` shows all", all.len());
    let told = beside.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(&total), "{total}: {beside}");
    // Parts are called by their titles, not by keys.
    assert!(
        !told.contains("_most") && !told.contains("random_"),
        "{beside}"
    );
}
