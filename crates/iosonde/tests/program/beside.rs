//! The comparison in a probe of two targets equals that of `compare`.

use crate::common::Scratch;
use serde_json::Value;

/// Two devices with noise, one of them slightly slower.
const FIRST: &str =
    "sim:read_us=500,write_us=300,parallel=4,noise=0.1,noise_rho=0.5,noise_period_us=100ms,seed=1";
const SECOND: &str =
    "sim:read_us=600,write_us=300,parallel=4,noise=0.1,noise_rho=0.5,noise_period_us=100ms,seed=2";

/// Returns the lines with a figure and a verdict, with single spaces.
fn rows(text: &str) -> Vec<String> {
    const VERDICTS: [&str; 4] = ["faster", "slower", "no difference shown", "undecided"];
    let is_row = |line: &&str| {
        line.starts_with(' ') && VERDICTS.iter().any(|verdict| line.ends_with(verdict))
    };
    let joined = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().filter(is_row).map(joined).collect()
}

#[test]
fn probe_pair_rows_equal_compare_rows() {
    let scratch = Scratch::new("beside");
    let probed = scratch.done(&["probe", FIRST, SECOND, "--runtime", "4s", "--details"]);
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
    let compared = scratch.done(&["compare", &a, &b, "--details"]);
    let all = rows(&compared);
    let headlines = rows(beside);
    assert!(headlines.len() >= 7, "{beside}");
    for row in &headlines {
        assert!(all.contains(row), "{row}\n{compared}");
    }
    let total = format!(
        "of {} figures; `iosonde compare --details` shows all",
        all.len()
    );
    let reported = beside.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(reported.contains(&total), "{total}: {beside}");
    // Parts have titles, not keys.
    assert!(
        !reported.contains("_most") && !reported.contains("random_"),
        "{beside}"
    );
}
