//! The form of printed results: lines with figures and units replaced by placeholders.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (
            r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}",
            "DATE",
        ),
        (r"^(fio|iosonde)-\S+$", "VERSION"),
        // fio's jobs are processes or threads.
        (
            r"^Starting \d+ (process|thread)(es|s)?( and \d+ (process|thread)(es|s)?)?",
            "Starting JOBS",
        ),
        // iosonde and fio print advice in different places.
        (r"^note: .*$", ""),
        // Progress messages; fio mixes them into the result.
        (r"^.*: Laying out IO files? \(.*\)$", ""),
        (r"\((nsec|usec|msec|sec)\)", "(TIME)"),
        (r"\d+(\.\d+)?[kKMGTP]?i?B/s", "RATE"),
        (r"\( *[KMGTP]?i?B/s\)", "(RATE)"),
        (r"\d+(\.\d+)?[kKMGTP]?i?B\b", "SIZE"),
        (r"-?\d+(\.\d+)?(msec\b|[kMGTP]?\b)", "#"),
        (r"([=\[]) +#", "$1#"),
        // The printed buckets depend on the measured latencies.
        (r"^( *lat \(TIME\) *: ).*$", "${1}BUCKETS"),
        // Line breaks depend on the width of figures; the names are compared separately.
        (r"^ *\|.*$", "PERCENTILES"),
        // Columns are padded with blanks.
        (r" +", " "),
    ]
    .map(|(pattern, form)| (Regex::new(pattern).expect("a valid pattern"), form))
    .into()
});

/// The form of one line.
#[must_use]
pub fn of_line(line: &str) -> String {
    let mut form = line.trim_end().to_owned();
    for (pattern, replacement) in RULES.iter() {
        form = pattern.replace_all(&form, *replacement).into_owned();
    }
    form
}

/// The forms of all lines that are not blank. A set, because the number of bucket lines varies.
#[must_use]
pub fn of_text(text: &str) -> BTreeSet<String> {
    text.lines()
        .map(of_line)
        .filter(|form| !form.trim().is_empty())
        .collect()
}

/// Forms that only one of two texts has: `-` if missing from the second, `+` if only there.
#[must_use]
pub fn differences(one: &str, other: &str) -> Vec<String> {
    let (reference, subject) = (of_text(one), of_text(other));
    let missing = reference
        .difference(&subject)
        .map(|form| format!("-{form}"));
    let extra = subject
        .difference(&reference)
        .map(|form| format!("+{form}"));
    let percentiles =
        (percentiles_of(one) != percentiles_of(other)).then(|| "other percentiles".to_owned());
    missing.chain(extra).chain(percentiles).collect()
}

/// The names of all percentiles in order of appearance.
fn percentiles_of(text: &str) -> Vec<&str> {
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(\d+\.\d+)th=\[").expect("a valid pattern"));
    NAME.captures_iter(text)
        .map(|name| name.extract::<1>().1[0])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_units_become_placeholders() {
        let line = "  read: IOPS=18.9k, BW=73.7MiB/s (77.2MB/s)(528KiB/7msec)";
        assert_eq!(of_line(line), " read: IOPS=#, BW=RATE (RATE)(SIZE/#)");
    }

    #[test]
    fn forms_of_two_runs_are_equal() {
        let one = "    clat (usec): min=22, max=752, avg=48.29, stdev=63.57\n  \
                   lat (usec)   : 2=28.12%, 4=19.53%\n";
        let other = "    clat (nsec): min=1484, max=21k, avg=2.1, stdev= 1.5\n  \
                     lat (usec)   : 50=39.06%\n  lat (msec)   : 2=1%\n";
        assert_eq!(differences(one, other), Vec::<String>::new());
        assert_eq!(
            differences("  | 1.00th=[ 1]\n", "  | 5.00th=[ 1]\n"),
            ["other percentiles"]
        );
        assert_eq!(differences("a: 1\n", "b: 1\n"), ["-a: #", "+b: #"]);
    }
}
