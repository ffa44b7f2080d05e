//! Parses TOML and YAML into one tree of values with their positions.

use super::yaml_positions::YamlPositions;
use iosonde_job::diagnostic::Diagnostic;
use iosonde_job::source::Span;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};
use std::fmt;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Deepest nesting of values.
const DEEPEST: usize = 32;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueNode {
    pub(super) span: Span,
    pub(super) value: NodeValue,
}

/// A value of a suite file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeValue {
    Table(Vec<TableEntry>),
    List(Vec<ValueNode>),
    Text(String),
    Number(serde_json::Number),
    Switch(bool),
    Nothing,
}

/// A member of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableEntry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) node: ValueNode,
}

impl ValueNode {
    /// The value of a member of a table.
    pub(super) fn get(&self, key: &str) -> Option<&ValueNode> {
        let entry = self.entries().iter().find(|entry| entry.key == key)?;
        Some(&entry.node)
    }

    /// Members of a table; empty for other values.
    pub(super) fn entries(&self) -> &[TableEntry] {
        match &self.value {
            NodeValue::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The span of the value with all members. TOML gives a `[table]` the span of its header only.
    pub(super) fn extent(&self) -> Span {
        let keys = self.entries().iter().map(|entry| entry.key_span);
        let nodes = self.entries().iter().map(|entry| &entry.node);
        let nodes = nodes.chain(self.items()).map(ValueNode::extent);
        keys.chain(nodes).fold(self.span, |all, one| Span {
            start: all.start.min(one.start),
            end: all.end.max(one.end),
            ..all
        })
    }

    /// Items of a list; empty for other values.
    pub(super) fn items(&self) -> &[ValueNode] {
        match &self.value {
            NodeValue::List(items) => items,
            _ => &[],
        }
    }

    /// The value without positions.
    pub(super) fn json(&self) -> Json {
        match &self.value {
            NodeValue::Table(entries) => Json::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.node.json()))
                    .collect::<Map<_, _>>(),
            ),
            NodeValue::List(items) => Json::Array(items.iter().map(ValueNode::json).collect()),
            NodeValue::Text(text) => Json::String(text.clone()),
            NodeValue::Number(number) => Json::Number(number.clone()),
            NodeValue::Switch(on) => Json::Bool(*on),
            NodeValue::Nothing => Json::Null,
        }
    }
}

/// Parses the text of a source: YAML by the extension of its name, otherwise TOML.
pub(super) fn parse_source(
    name: &str,
    source: usize,
    text: &str,
) -> Result<ValueNode, Vec<Diagnostic>> {
    let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    match is_yaml {
        true => parse_yaml(source, text).map_err(|error| vec![error]),
        false => parse_toml(source, text),
    }
}

fn place(source: usize, range: Range<usize>) -> Span {
    Span {
        source,
        start: range.start,
        end: range.end.max(range.start),
    }
}

fn parse_toml(source: usize, text: &str) -> Result<ValueNode, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let diagnostics = errors.iter().take(20).map(|error| {
            let diagnostic = Diagnostic::error(format!("not TOML: {}", error.message()));
            match error.span() {
                Some(range) => diagnostic.at(place(source, range)),
                None => diagnostic,
            }
        });
        return Err(diagnostics.collect());
    }
    let whole = place(source, 0..text.len());
    toml_table(source, table.get_ref(), whole, 0).map_err(|error| vec![error])
}

fn toml_table(
    source: usize,
    table: &DeTable<'_>,
    span: Span,
    depth: usize,
) -> Result<ValueNode, Diagnostic> {
    let mut entries = Vec::new();
    for (key, value) in table {
        entries.push(TableEntry {
            key: key.get_ref().to_string(),
            key_span: place(source, key.span()),
            node: toml_value(source, value.get_ref(), value.span(), depth + 1)?,
        });
    }
    // Restores the order of the text, which the map has lost.
    entries.sort_by_key(|entry| entry.key_span.start);
    Ok(ValueNode {
        span,
        value: NodeValue::Table(entries),
    })
}

fn toml_value(
    source: usize,
    value: &DeValue<'_>,
    range: Range<usize>,
    depth: usize,
) -> Result<ValueNode, Diagnostic> {
    let span = place(source, range);
    if depth > DEEPEST {
        return Err(Diagnostic::error("values are nested too deeply").at(span));
    }
    let value = match value {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Boolean(on) => NodeValue::Switch(*on),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            let parsed = i64::from_str_radix(&digits, number.radix()).map(Into::into);
            NodeValue::Number(parsed.map_err(|_| {
                Diagnostic::error(format!("{digits} is too large a number")).at(span)
            })?)
        }
        DeValue::Float(number) => {
            let parsed: Option<f64> = number.as_str().replace('_', "").parse().ok();
            let number = parsed.and_then(serde_json::Number::from_f64);
            NodeValue::Number(
                number.ok_or_else(|| Diagnostic::error("not a finite number").at(span))?,
            )
        }
        DeValue::Datetime(date) => NodeValue::Text(date.to_string()),
        DeValue::Array(items) => {
            let items = items
                .iter()
                .map(|item| toml_value(source, item.get_ref(), item.span(), depth + 1));
            NodeValue::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return toml_table(source, table, span, depth),
    };
    Ok(ValueNode { span, value })
}

fn parse_yaml(source: usize, text: &str) -> Result<ValueNode, Diagnostic> {
    let read: Result<serde_saphyr::Spanned<YamlValue>, _> = serde_saphyr::from_str(text);
    let positions = YamlPositions::of_text(source, text);
    match read {
        Ok(raw) => yaml_node(&positions, raw, 0),
        Err(error) => {
            let message = error.without_snippet().to_string();
            let first = message.lines().next().unwrap_or_default().to_owned();
            let diagnostic = Diagnostic::error(format!("not YAML: {first}"));
            Err(match error.location() {
                Some(at) => diagnostic.at(positions.span(&at)),
                None => diagnostic,
            })
        }
    }
}

fn yaml_node(
    positions: &YamlPositions,
    raw: serde_saphyr::Spanned<YamlValue>,
    depth: usize,
) -> Result<ValueNode, Diagnostic> {
    let span = positions.span(&raw.defined);
    if depth > DEEPEST {
        return Err(Diagnostic::error("values are nested too deeply").at(span));
    }
    let value = match raw.value {
        YamlValue::Scalar(value) => value,
        YamlValue::List(items) => NodeValue::List(
            items
                .into_iter()
                .map(|item| yaml_node(positions, item, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        YamlValue::Table(entries) => {
            let entry = |(key, value): (serde_saphyr::Spanned<String>, _)| {
                let mut key_span = positions.span(&key.defined);
                key_span.end = key_span.end.min(key_span.start + key.value.len());
                Ok(TableEntry {
                    key: key.value,
                    key_span,
                    node: yaml_node(positions, value, depth + 1)?,
                })
            };
            let entries = entries.into_iter().map(entry);
            NodeValue::Table(entries.collect::<Result<_, _>>()?)
        }
    };
    Ok(ValueNode { span, value })
}

/// A YAML value.
enum YamlValue {
    Scalar(NodeValue),
    List(Vec<serde_saphyr::Spanned<YamlValue>>),
    Table(
        Vec<(
            serde_saphyr::Spanned<String>,
            serde_saphyr::Spanned<YamlValue>,
        )>,
    ),
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlValue, D::Error> {
        deserializer.deserialize_any(YamlValueVisitor)
    }
}

struct YamlValueVisitor;

impl<'de> Visitor<'de> for YamlValueVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, on: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(NodeValue::Switch(on)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(NodeValue::Number(number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(NodeValue::Number(number.into())))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<YamlValue, E> {
        let number = serde_json::Number::from_f64(number);
        let number = number.ok_or_else(|| E::custom("not a finite number"))?;
        Ok(YamlValue::Scalar(NodeValue::Number(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(NodeValue::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(NodeValue::Nothing))
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(NodeValue::Nothing))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        YamlValue::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<YamlValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(YamlValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlValue::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const TOML: &str =
        "name = \"a\"\ntargets = [\".\", \"/x\"]\n[[workload]]\nname = \"w\"\nsweep = {}\nn = 3\n";
    const YAML: &str =
        "name: a\ntargets: [., /x]\nworkload:\n  - name: w\n    sweep: {}\n    n: 3\n";

    #[test]
    fn toml_and_yaml_give_equal_trees() {
        let toml = parse_source("a.toml", 0, TOML).unwrap();
        let yaml = parse_source("a.yaml", 0, YAML).unwrap();
        assert_eq!(toml.json(), yaml.json());
        let at = |text: &'static str, node: &ValueNode| &text[node.span.start..node.span.end];
        let name = |node: &ValueNode| {
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
    fn syntax_errors_have_positions() {
        for (name, text) in [("a.toml", "x = [1\ny = 2\n"), ("a.yaml", "x: [1\ny: }\n")] {
            let errors = parse_source(name, 0, text).unwrap_err();
            assert!(errors[0].span.is_some(), "{errors:?}");
        }
        let deep = format!("x = {}{}", "[".repeat(40), "]".repeat(40));
        assert!(parse_source("a.toml", 0, &deep).is_err());
    }

    /// Minutes if each position took the time of the whole text.
    #[test]
    fn long_yaml_is_read_in_linear_time() {
        const ITEMS: usize = 60_000;
        let started = Instant::now();
        for (item, end) in [("- 1\n", ""), ("[1", "]")] {
            let text = match end {
                "" => item.repeat(ITEMS),
                end => format!("{item}{}{end}", ",1".repeat(ITEMS - 1)),
            };
            assert_eq!(
                parse_source("a.yaml", 0, &text).unwrap().items().len(),
                ITEMS
            );
        }
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
