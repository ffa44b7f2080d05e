//! Compares JSON documents by structure: the same paths with the same type at each.

use std::collections::BTreeMap;

use serde_json::Value;

/// Members whose names depend on measured values; `*` replaces those names.
const MEASURED_NAMES: [&str; 1] = ["bins"];

/// All paths of a document with their types. The elements of an array share one path.
#[must_use]
pub fn shape(document: &Value) -> BTreeMap<String, &'static str> {
    let mut paths = BTreeMap::new();
    walk(document, String::new(), &mut paths);
    paths
}

/// The job names of fio's JSON, in its order.
///
/// # Panics
/// If it has no jobs.
#[must_use]
pub fn job_names(document: &Value) -> Vec<Value> {
    let jobs = document["jobs"].as_array().expect("jobs").iter();
    jobs.map(|job| job["jobname"].clone()).collect()
}

fn walk(value: &Value, path: String, paths: &mut BTreeMap<String, &'static str>) {
    match value {
        Value::Object(members) => {
            let measured = MEASURED_NAMES
                .iter()
                .any(|name| path.ends_with(&format!("/{name}")));
            for (name, member) in members {
                let name = if measured { "*" } else { name };
                walk(member, format!("{path}/{name}"), paths);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                walk(element, format!("{path}[]"), paths);
            }
        }
        _ => {}
    }
    paths.insert(path, kind(value));
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Differences in structure, each as a sentence. `allowed` are paths that only the subject may
/// have, including everything below them.
#[must_use]
pub fn differences(reference: &Value, subject: &Value, allowed: &[&str]) -> Vec<String> {
    let (reference, subject) = (shape(reference), shape(subject));
    let mut found = Vec::new();
    for (path, kind) in &reference {
        match subject.get(path) {
            None => found.push(format!("{path} ({kind}) is missing")),
            Some(other) if other != kind => {
                found.push(format!("{path} is {other} instead of {kind}"))
            }
            Some(_) => {}
        }
    }
    let only_here = subject
        .iter()
        .filter(|(path, _)| !reference.contains_key(*path));
    found.extend(
        only_here
            .filter(|(path, _)| !allowed.iter().any(|allowed| is_at_or_below(path, allowed)))
            .map(|(path, kind)| format!("{path} ({kind}) is not fio's")),
    );
    found
}

fn is_at_or_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}

/// The number at a path such as `/jobs/0/read/iops`.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn number(document: &Value, pointer: &str) -> f64 {
    document
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number at {pointer} in {document:#}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_extra_and_retyped_members_are_found() {
        let reference = json!({"a": 1, "b": {"c": 1.5}, "l": [{"x": 1}]});
        let subject = json!({
            "a": "1", "b": {}, "l": [{"x": 1, "y": 2}], "ours": {"deep": [1]}, "ours_too": 1
        });
        assert_eq!(
            differences(&reference, &subject, &["/ours"]),
            [
                "/a is string instead of integer",
                "/b/c (float) is missing",
                "/l[]/y (integer) is not fio's",
                "/ours_too (integer) is not fio's"
            ]
        );
        assert_eq!(
            differences(&reference, &reference, &[]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn measured_names_are_ignored() {
        let one = json!({"clat_ns": {"bins": {"123": 1}}});
        let other = json!({"clat_ns": {"bins": {"124": 7, "130": 1}}});
        assert_eq!(differences(&one, &other, &[]), Vec::<String>::new());
    }
}
