//! Expands `${VARIABLES}` in lines and `$keywords` in values.

use crate::env::Env;
use crate::value::expression;

/// Replaces every `${NAME}` in a line by the variable's value, or by nothing if the variable is not
/// set.
///
/// Returns the new line and the unset names. A `${` without `}` stays unchanged.
pub fn variables(line: &str, env: &dyn Env) -> (String, Vec<String>) {
    let mut expanded = String::with_capacity(line.len());
    let mut unset = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let name = &rest[start + 2..start + length];
        expanded.push_str(&rest[..start]);
        match env.var(name) {
            Some(value) => expanded.push_str(&value),
            None => unset.push(name.to_owned()),
        }
        rest = &rest[start + length + 1..];
    }
    expanded.push_str(rest);
    (expanded, unset)
}

/// Replaces `$pagesize`, `$mb_memory` and `$ncpus` in a value, and evaluates the result if it is an
/// arithmetic expression.
///
/// Returns `None` if the value has no keyword.
pub(crate) fn keywords(value: &str, env: &dyn Env) -> Option<String> {
    if !value.contains('$') {
        return None;
    }
    let mut expanded = value.to_owned();
    for (keyword, number) in [
        ("$pagesize", env.page_size()),
        ("$mb_memory", env.memory_mib()),
        ("$ncpus", env.cpus()),
    ] {
        expanded = expanded.replace(keyword, &number.to_string());
    }
    if expanded == value {
        return None;
    }
    let sum = expression::evaluate(&expanded, |digits| digits.parse().ok());
    Some(match sum {
        Some(number) => format_number(number),
        None => expanded,
    })
}

/// Formats a number without its fraction, as fio's `bc` prints it.
fn format_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        format!("{}", number as i64)
    } else {
        format!("{}", number.trunc())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FakeEnv;

    #[test]
    fn variables_expand_anywhere_in_a_line() {
        let env = FakeEnv::new().set("OPT", "bs").set("SIZE", "4k");
        let (line, unset) = variables("${OPT}=${SIZE}${NOPE}", &env);
        assert_eq!(line, "bs=4k");
        assert_eq!(unset, ["NOPE"]);
        assert_eq!(variables("a=${open", &env).0, "a=${open");
        assert_eq!(variables("a=$open", &env).0, "a=$open");
    }

    #[test]
    fn keywords_expand_within_expressions() {
        let env = FakeEnv::new();
        assert_eq!(keywords("8*$mb_memory", &env).as_deref(), Some("65536"));
        assert_eq!(keywords("$pagesize", &env).as_deref(), Some("4096"));
        assert_eq!(keywords("$ncpus/2", &env).as_deref(), Some("2"));
        assert_eq!(keywords("/dev/x$ncpus", &env).as_deref(), Some("/dev/x4"));
        assert_eq!(keywords("$jobname.$jobnum", &env), None);
    }
}
