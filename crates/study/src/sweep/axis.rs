//! Axes as users write them: `4k,16k,64k`, `1..512`, `1..32+4`.

use iosonde_job::diagnostic::{Diagnostic, Diagnostics, nearest};
use iosonde_job::options::{self, Kind, Status};
use iosonde_job::value::{Bytes, bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Name of the axis that the targets are, where there are several.
pub const TARGET: &str = "target";
/// Name of the axis that the jobs of a job file are, where there are several.
pub(super) const JOB: &str = "job";
/// More values than any axis can mean.
const MOST_VALUES: usize = 10_000;
/// What a sweep sets itself, for every cell.
const OWN: [(&str, &str); 5] = [
    (
        "runtime",
        "--runtime is the time of a cell, the same for all",
    ),
    (
        "ramp_time",
        "the ramp is as long as the queue takes to turn over",
    ),
    ("time_based", "every cell is measured for a time"),
    ("filename", "name the files or devices as targets"),
    ("directory", "name the directories as targets"),
];

/// An option and the values that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Name of the option, as in fio; or `target`, or `job`.
    pub name: String,
    /// Its values, in the order they were given.
    pub values: Vec<String>,
}

/// Reads `(option, values)` pairs. Every error is in `diagnostics`; axes with errors are left out.
pub fn parse_axes(given: &[(String, String)], diagnostics: &mut Diagnostics) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (option, text) in given {
        match axis(option, text) {
            Err(diagnostic) => diagnostics.push(diagnostic),
            Ok(axis) => match given_twice(&axis, &axes) {
                Some(twice) => diagnostics.push(twice),
                None => axes.push(axis),
            },
        }
    }
    axes
}

/// What is wrong with an axis that is among those before it, by whatever name.
pub(crate) fn given_twice(axis: &Axis, before: &[Axis]) -> Option<Diagnostic> {
    let is_there = before.iter().any(|other| other.name == axis.name);
    is_there.then(|| {
        Diagnostic::error(format!("the axis `{}` is given twice", axis.name))
            .help("write all its values in one list")
    })
}

fn axis(option: &str, text: &str) -> Result<Axis, Diagnostic> {
    let Some(row) = options::find(option) else {
        let unknown = Diagnostic::error(format!("there is no option `{option}`"));
        let names = options::all().flat_map(|row| row.names());
        return Err(match nearest(option, names) {
            Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
            None => unknown.help("`iosonde fio --cmdhelp` lists all options"),
        });
    };
    if let Some((_, why)) = OWN.iter().find(|(name, _)| *name == row.name) {
        return Err(Diagnostic::error(format!("`{}` cannot be an axis", row.name)).help(*why));
    }
    if let Status::Unsupported { reason, instead } = row.status {
        let refused = Diagnostic::error(format!("`{}` is not supported: {reason}", row.name));
        return Err(refused.help(format!("use {instead}")));
    }
    let wrong = |problem: String| {
        Diagnostic::error(format!("{}={text}: {problem}", row.name)).help(
            "write a list `1,4,16`, a range that doubles `1..512`, or one with a step `1..32+4`",
        )
    };
    let values = values(text).map_err(wrong)?;
    if matches!(row.kind, Kind::Int(..) | Kind::IntList(..))
        && let Some((value, (first, last))) = values
            .iter()
            .find_map(|value| Some((value, value.split_once('.')?)))
    {
        let problem = format!("{}={text}: `{value}` is not a whole number", row.name);
        return Err(Diagnostic::error(problem).help(format!("did you mean {first}..{last}?")));
    }
    Ok(Axis {
        name: row.name.to_owned(),
        values,
    })
}

/// The values that a text means.
fn values(text: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for part in text.split(',').map(str::trim) {
        if part.is_empty() {
            return Err("a value is missing".to_owned());
        }
        match part.split_once("..") {
            Some((first, rest)) => values.extend(range(first, rest)?),
            None => values.push(part.to_owned()),
        }
    }
    let mut met = HashSet::new();
    // 4k and 4096 are one value.
    let meaning =
        |value: &str| bytes(value, Bytes::Binary).map_or(value.to_owned(), |n| n.to_string());
    match values.iter().find(|value| !met.insert(meaning(value))) {
        Some(twice) => Err(format!("the value `{twice}` is there twice")),
        None => Ok(values),
    }
}

/// `FIRST..LAST` doubles, `FIRST..LAST+STEP` adds; the last value is in it if it is met.
fn range(first: &str, rest: &str) -> Result<Vec<String>, String> {
    let (last, step) = match rest.split_once('+') {
        Some((last, step)) => (last, Some(step)),
        None => (rest, None),
    };
    let number = |text: &str| {
        bytes(text.trim(), Bytes::Binary).map_err(|_| format!("`{text}` is not a whole number"))
    };
    let (low, high) = (number(first)?, number(last)?);
    let step = step.map(number).transpose()?;
    if low > high {
        return Err(format!(
            "`{first}` is more than `{last}`: the range is empty"
        ));
    }
    if step == Some(0) {
        return Err("a step of 0 goes nowhere".to_owned());
    }
    if step.is_none() && low == 0 {
        return Err("0 doubled stays 0".to_owned());
    }
    let next = |value: &u64| match step {
        Some(step) => value.checked_add(step),
        None => value.checked_mul(2),
    };
    let has_unit = |text: &str| {
        text.trim()
            .ends_with(|last: char| last.is_ascii_alphabetic())
    };
    let written = if has_unit(first) || has_unit(last) {
        size_name
    } else {
        |value: u64| value.to_string()
    };
    let values: Vec<String> = std::iter::successors(Some(low), next)
        .take_while(|value| *value <= high)
        .take(MOST_VALUES + 1)
        .map(written)
        .collect();
    if values.len() > MOST_VALUES {
        return Err(format!("more than {MOST_VALUES} values"));
    }
    Ok(values)
}

/// As people write sizes: `64k`, `1m`.
pub fn size_name(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let fitting = units
        .iter()
        .find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    match fitting {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(option: &str, text: &str) -> Result<Vec<String>, String> {
        axis(option, text)
            .map(|axis| axis.values)
            .map_err(|error| error.message)
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(read("rw", "read,randread").unwrap(), ["read", "randread"]);
        assert_eq!(read("iodepth", "1..8").unwrap(), ["1", "2", "4", "8"]);
        assert_eq!(read("iodepth", "1..10").unwrap(), ["1", "2", "4", "8"]);
        assert_eq!(read("numjobs", "1..12+4").unwrap(), ["1", "5", "9"]);
        assert_eq!(read("bs", "4k..16k,1m").unwrap(), ["4k", "8k", "16k", "1m"]);
        assert_eq!(read("bs", "512..2k").unwrap(), ["512", "1k", "2k"]);
        assert_eq!(read("rwmixread", "0..100+50").unwrap(), ["0", "50", "100"]);
    }

    #[test]
    fn aliases_are_one_axis() {
        let given = [("bs", "4k"), ("blocksize", "8k")].map(|(a, b)| (a.into(), b.into()));
        let mut diagnostics = Diagnostics::default();
        let axes = parse_axes(&given, &mut diagnostics);
        assert_eq!(axes.len(), 1);
        assert!(diagnostics.list[0].message.contains("given twice"));
    }

    /// All errors at once, each with what to write instead.
    #[test]
    fn what_is_no_axis_is_refused() {
        let given = [
            ("iodept", "1"),
            ("bs", "4k,,8k"),
            ("iodepth", "8..1"),
            ("numjobs", "0..4"),
            ("rwmixread", "0..100+0"),
            ("rate_iops", "1..x"),
            ("size", "1g,1024m"),
            ("runtime", "10,20"),
            ("posixaio_nonsense", "1"),
            ("iodepth_low", "1.8"),
        ];
        let mut diagnostics = Diagnostics::default();
        let given = given.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert!(parse_axes(&given, &mut diagnostics).is_empty());
        insta::assert_snapshot!(diagnostics.render(false));
    }

    proptest! {
        #[test]
        fn ranges_stay_within_their_ends(low in 1u64..1000, more in 0u64..100_000, step in 1u64..500) {
            for text in [format!("{low}..{}", low + more), format!("{low}..{}+{step}", low + more)] {
                let values = values(&text);
                if let Ok(values) = values {
                    let numbers: Vec<u64> = values.iter().map(|v| v.parse().unwrap()).collect();
                    prop_assert_eq!(numbers[0], low);
                    prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
                    prop_assert!(numbers.last().is_some_and(|last| *last <= low + more));
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-z.,+*-]{0,24}") {
            let _ = values(&text);
        }
    }
}
