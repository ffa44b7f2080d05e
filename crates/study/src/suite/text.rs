//! TOML and YAML to one tree that knows where each piece stands.

use iosonde_job::diagnostic::Diagnostic;
use iosonde_job::source::Span;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};
use std::fmt;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// More values inside each other than any suite needs.
const DEEPEST: usize = 32;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Value,
}

/// What a piece of a suite is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Table(Vec<Entry>),
    List(Vec<Node>),
    Text(String),
    Number(serde_json::Number),
    Switch(bool),
    Nothing,
}

/// A member of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) node: Node,
}

impl Node {
    /// The member of a table.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let entry = self.entries().iter().find(|entry| entry.key == key)?;
        Some(&entry.node)
    }

    /// Members of a table; none of anything else.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// From the first to the last character of it and of all its members. TOML gives a `[table]` the place of its header.
    pub(super) fn extent(&self) -> Span {
        let keys = self.entries().iter().map(|entry| entry.key_span);
        let nodes = self.entries().iter().map(|entry| &entry.node);
        let nodes = nodes.chain(self.items()).map(Node::extent);
        keys.chain(nodes).fold(self.span, |all, one| Span {
            start: all.start.min(one.start),
            end: all.end.max(one.end),
            ..all
        })
    }

    /// Members of a list; none of anything else.
    pub(super) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The same without places.
    pub(super) fn json(&self) -> Json {
        match &self.value {
            Value::Table(entries) => Json::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.node.json()))
                    .collect::<Map<_, _>>(),
            ),
            Value::List(items) => Json::Array(items.iter().map(Node::json).collect()),
            Value::Text(text) => Json::String(text.clone()),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Switch(on) => Json::Bool(*on),
            Value::Nothing => Json::Null,
        }
    }
}

/// Reads a text that has been added to the sources under this number; YAML if its name ends so, else TOML.
pub(super) fn read(name: &str, source: usize, text: &str) -> Result<Node, Vec<Diagnostic>> {
    let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    match is_yaml {
        true => yaml(source, text).map_err(|error| vec![error]),
        false => toml(source, text),
    }
}

fn place(source: usize, range: Range<usize>) -> Span {
    Span {
        source,
        start: range.start,
        end: range.end.max(range.start),
    }
}

fn toml(source: usize, text: &str) -> Result<Node, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let told = errors.iter().take(20).map(|error| {
            let diagnostic = Diagnostic::error(format!("not TOML: {}", error.message()));
            match error.span() {
                Some(range) => diagnostic.at(place(source, range)),
                None => diagnostic,
            }
        });
        return Err(told.collect());
    }
    let whole = place(source, 0..text.len());
    toml_table(source, table.get_ref(), whole, 0).map_err(|error| vec![error])
}

fn toml_table(
    source: usize,
    table: &DeTable<'_>,
    span: Span,
    depth: usize,
) -> Result<Node, Diagnostic> {
    let mut entries = Vec::new();
    for (key, value) in table {
        entries.push(Entry {
            key: key.get_ref().to_string(),
            key_span: place(source, key.span()),
            node: toml_value(source, value.get_ref(), value.span(), depth + 1)?,
        });
    }
    // The map has its own order; the writer's is that of the text.
    entries.sort_by_key(|entry| entry.key_span.start);
    Ok(Node {
        span,
        value: Value::Table(entries),
    })
}

fn toml_value(
    source: usize,
    value: &DeValue<'_>,
    range: Range<usize>,
    depth: usize,
) -> Result<Node, Diagnostic> {
    let span = place(source, range);
    if depth > DEEPEST {
        return Err(Diagnostic::error("too many values inside each other").at(span));
    }
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(on) => Value::Switch(*on),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            let parsed = i64::from_str_radix(&digits, number.radix()).map(Into::into);
            Value::Number(parsed.map_err(|_| {
                Diagnostic::error(format!("{digits} is too large a number")).at(span)
            })?)
        }
        DeValue::Float(number) => {
            let parsed: Option<f64> = number.as_str().replace('_', "").parse().ok();
            let number = parsed.and_then(serde_json::Number::from_f64);
            Value::Number(number.ok_or_else(|| Diagnostic::error("not a finite number").at(span))?)
        }
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(items) => {
            let items = items
                .iter()
                .map(|item| toml_value(source, item.get_ref(), item.span(), depth + 1));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return toml_table(source, table, span, depth),
    };
    Ok(Node { span, value })
}

fn yaml(source: usize, text: &str) -> Result<Node, Diagnostic> {
    let read: Result<serde_saphyr::Spanned<Raw>, _> = serde_saphyr::from_str(text);
    match read {
        Ok(raw) => yaml_node(source, text, raw, 0),
        Err(error) => {
            let message = error.without_snippet().to_string();
            let first = message.lines().next().unwrap_or_default().to_owned();
            let diagnostic = Diagnostic::error(format!("not YAML: {first}"));
            Err(match error.location() {
                Some(at) => diagnostic.at(yaml_span(source, text, &at)),
                None => diagnostic,
            })
        }
    }
}

fn yaml_span(source: usize, text: &str, at: &serde_saphyr::Location) -> Span {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let line = (at.line().max(1) - 1) as usize;
    let before: usize = lines.iter().take(line).map(|line| line.len()).sum();
    let rest = lines.get(line).copied().unwrap_or("");
    let column = (at.column().max(1) - 1) as usize;
    let within = rest.char_indices().nth(column).map_or(0, |(at, _)| at);
    let start = (before + within).min(text.len());
    // The word that begins there: where a value ends is not always told.
    let length = rest
        .get(within..)
        .map_or(0, |rest| rest.trim_end_matches(['\n', '\r']).len());
    place(source, start..start + length)
}

fn yaml_node(
    source: usize,
    text: &str,
    raw: serde_saphyr::Spanned<Raw>,
    depth: usize,
) -> Result<Node, Diagnostic> {
    let span = yaml_span(source, text, &raw.defined);
    if depth > DEEPEST {
        return Err(Diagnostic::error("too many values inside each other").at(span));
    }
    let value = match raw.value {
        Raw::Scalar(value) => value,
        Raw::List(items) => Value::List(
            items
                .into_iter()
                .map(|item| yaml_node(source, text, item, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Raw::Table(entries) => {
            let entry = |(key, value): (serde_saphyr::Spanned<String>, _)| {
                let mut key_span = yaml_span(source, text, &key.defined);
                key_span.end = key_span.end.min(key_span.start + key.value.len());
                Ok(Entry {
                    key: key.value,
                    key_span,
                    node: yaml_node(source, text, value, depth + 1)?,
                })
            };
            let entries = entries.into_iter().map(entry);
            Value::Table(entries.collect::<Result<_, _>>()?)
        }
    };
    Ok(Node { span, value })
}

/// Whatever YAML holds.
enum Raw {
    Scalar(Value),
    List(Vec<serde_saphyr::Spanned<Raw>>),
    Table(Vec<(serde_saphyr::Spanned<String>, serde_saphyr::Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, on: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Switch(on)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Number(number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Number(number.into())))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Raw, E> {
        let number = serde_json::Number::from_f64(number);
        let number = number.ok_or_else(|| E::custom("not a finite number"))?;
        Ok(Raw::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Nothing))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Nothing))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str =
        "name = \"a\"\ntargets = [\".\", \"/x\"]\n[[workload]]\nname = \"w\"\nsweep = {}\nn = 3\n";
    const YAML: &str =
        "name: a\ntargets: [., /x]\nworkload:\n  - name: w\n    sweep: {}\n    n: 3\n";

    #[test]
    fn both_languages_give_one_tree() {
        let toml = read("a.toml", 0, TOML).unwrap();
        let yaml = read("a.yaml", 0, YAML).unwrap();
        assert_eq!(toml.json(), yaml.json());
        let at = |text: &'static str, node: &Node| &text[node.span.start..node.span.end];
        let name = |node: &Node| {
            node.get("workload").unwrap().items()[0]
                .get("name")
                .cloned()
        };
        assert_eq!(at(TOML, &name(&toml).unwrap()), "\"w\"");
        assert_eq!(at(YAML, &name(&yaml).unwrap()), "w");
        let key = &yaml.get("workload").unwrap().items()[0].entries()[2];
        assert_eq!(&YAML[key.key_span.start..key.key_span.end], "n");
    }

    #[test]
    fn what_is_neither_is_told_with_its_place() {
        for (name, text) in [("a.toml", "x = [1\ny = 2\n"), ("a.yaml", "x: [1\ny: }\n")] {
            let errors = read(name, 0, text).unwrap_err();
            assert!(errors[0].span.is_some(), "{errors:?}");
        }
        let deep = format!("x = {}{}", "[".repeat(40), "]".repeat(40));
        assert!(read("a.toml", 0, &deep).is_err());
    }
}
