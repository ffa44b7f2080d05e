//! Axes and their notation: `4k,16k,64k`, `1..512`, `1..32+4`.

use crate::sweep_axis::Axis;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics, nearest};
use iosonde_job::options::{self, OptionSupport, ValueKind};
use iosonde_job::value::{Bytes, bytes};
use std::collections::HashSet;

/// Name of the axis of several targets.
pub const TARGET: &str = "target";
/// Name of the axis of several jobs of a job file.
pub(super) const JOB: &str = "job";
/// Name of the option that sets the working set.
pub const WORKING_SET: &str = "size";
/// Most values of an axis.
const MOST_VALUES: usize = 10_000;
/// Options that the sweep sets in every cell, with the reason why they cannot be axes.
const OWN: [(&str, &str); 5] = [
    (
        "runtime",
        "set the time of all cells: --runtime, in a suite sweep = { runtime = \"60\" }",
    ),
    (
        "ramp_time",
        "the sweep chooses the ramp by the time the queue takes to turn over",
    ),
    ("time_based", "each cell is measured for its whole runtime"),
    ("filename", "use the files or devices as targets"),
    ("directory", "use the directories as targets"),
];

/// Parses `(option, values)` pairs. Errors go to `diagnostics`. Axes with errors are left out.
pub fn parse_axes(given: &[(String, String)], diagnostics: &mut Diagnostics) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (option, text) in given {
        match parse_axis(option, text) {
            Err(diagnostic) => diagnostics.push(diagnostic),
            Ok(axis) => match given_twice(&axis, &axes) {
                Some(twice) => diagnostics.push(twice),
                None => axes.push(axis),
            },
        }
    }
    axes
}

/// Returns an error if the axis is already in `before`, also under an alias.
pub fn given_twice(axis: &Axis, before: &[Axis]) -> Option<Diagnostic> {
    let is_there = before.iter().any(|other| other.name == axis.name);
    is_there.then(|| {
        Diagnostic::error(format!("the axis `{}` is given twice", axis.name))
            .help("use one list of all its values")
    })
}

fn parse_axis(option: &str, text: &str) -> Result<Axis, Diagnostic> {
    let Some(row) = options::find_option(option) else {
        let unknown = Diagnostic::unknown_option(option);
        let names = options::list_options().flat_map(|row| row.names());
        return Err(match nearest(option, names) {
            Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
            None => unknown.help("`iosonde fio --cmdhelp` lists all options"),
        });
    };
    if let Some((_, why)) = OWN.iter().find(|(name, _)| *name == row.name) {
        return Err(Diagnostic::error(format!("`{}` cannot be an axis", row.name)).help(*why));
    }
    if let OptionSupport::Unsupported { reason, instead } = row.status {
        let refused = Diagnostic::error(format!("`{}` is not supported: {reason}", row.name));
        return Err(refused.help(format!("use {instead}")));
    }
    let wrong = |problem: String| {
        Diagnostic::error(format!("{}={text}: {problem}", row.name)).help(
            "use a list `1,4,16`, a range that doubles `1..512`, or a range with a step `1..32+4`",
        )
    };
    let values = values(text).map_err(wrong)?;
    if matches!(row.kind, ValueKind::Int(..) | ValueKind::IntList(..))
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

/// Parses a list of values and ranges.
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
    // 4k and 4096 are the same value.
    let meaning =
        |value: &str| bytes(value, Bytes::Binary).map_or(value.to_owned(), |n| n.to_string());
    match values.iter().find(|value| !met.insert(meaning(value))) {
        Some(twice) => Err(format!("the value `{twice}` appears twice")),
        None => Ok(values),
    }
}

/// Expands `FIRST..LAST` by doubling and `FIRST..LAST+STEP` by adding, up to at most LAST.
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
        return Err("the step must not be 0".to_owned());
    }
    if step.is_none() && low == 0 {
        return Err("a range that doubles cannot start at 0".to_owned());
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

/// Formats a size in bytes with a unit: `64k`, `1m`.
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
        parse_axis(option, text)
            .map(|axis| axis.values)
            .map_err(|error| error.message)
    }

    #[test]
    fn axis_values_accept_lists_and_ranges() {
        assert_eq!(read("rw", "read,randread").unwrap(), ["read", "randread"]);
        assert_eq!(read("iodepth", "1..8").unwrap(), ["1", "2", "4", "8"]);
        assert_eq!(read("iodepth", "1..10").unwrap(), ["1", "2", "4", "8"]);
        assert_eq!(read("numjobs", "1..12+4").unwrap(), ["1", "5", "9"]);
        assert_eq!(read("bs", "4k..16k,1m").unwrap(), ["4k", "8k", "16k", "1m"]);
        assert_eq!(read("bs", "512..2k").unwrap(), ["512", "1k", "2k"]);
        assert_eq!(read("rwmixread", "0..100+50").unwrap(), ["0", "50", "100"]);
    }

    #[test]
    fn aliases_name_the_same_axis() {
        let given = [("bs", "4k"), ("blocksize", "8k")].map(|(a, b)| (a.into(), b.into()));
        let mut diagnostics = Diagnostics::default();
        let axes = parse_axes(&given, &mut diagnostics);
        assert_eq!(axes.len(), 1);
        assert!(diagnostics.list[0].message.contains("given twice"));
    }

    /// All errors are reported together, each with help.
    #[test]
    fn axes_with_errors_are_refused_with_help() {
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
        fn ranges_stay_within_their_ends(
            low in 1u64..1000,
            more in 0u64..100_000,
            step in 1u64..500,
        ) {
            let end = low + more;
            for text in [format!("{low}..{end}"), format!("{low}..{end}+{step}")] {
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
        fn values_of_random_text_do_not_panic(text in "[0-9a-z.,+*-]{0,24}") {
            let _ = values(&text);
        }
    }
}
