//! Checks a suite against its JSON Schema, and reports unknown members and wrong types with their
//! positions. Supports the part of JSON Schema that the types of `model` use.

use super::text::{NodeValue, TableEntry, ValueNode};
use iosonde_job::diagnostic::{Diagnostic, Diagnostics, nearest};
use serde_json::Value as Json;

/// Reports and removes all that the schema rejects, so the rest can be read. False: all is gone.
pub(super) fn check(node: &mut ValueNode, schema: &Json, all: &mut Diagnostics) -> bool {
    Checker {
        definitions: &schema["$defs"],
    }
    .check(node, schema, "the suite", all)
}

struct Checker<'a> {
    definitions: &'a Json,
}

impl<'a> Checker<'a> {
    /// Resolves a `$ref`.
    fn resolved(&self, schema: &'a Json) -> &'a Json {
        match schema["$ref"]
            .as_str()
            .and_then(|name| name.rsplit('/').next())
        {
            Some(name) => &self.definitions[name],
            None => schema,
        }
    }

    /// Whether the node is valid and may stay.
    fn check(
        &self,
        node: &mut ValueNode,
        schema: &'a Json,
        name: &str,
        all: &mut Diagnostics,
    ) -> bool {
        let schema = self.resolved(schema);
        if let Some(choices) = schema["anyOf"].as_array() {
            return self.check_choices(node, choices, name, all);
        }
        if !self.is_kind(node, schema) {
            let wanted = kinds(schema);
            all.push(
                Diagnostic::error(format!("`{name}` is {}", article(&node.value)))
                    .at(node.span)
                    .label(format!("use {}", wanted.join(" or "))),
            );
            return false;
        }
        match &mut node.value {
            NodeValue::Table(entries) => {
                entries.retain_mut(|entry| self.check_member(entry, schema, name, all));
            }
            NodeValue::List(items) => {
                items.retain_mut(|item| self.check(item, &schema["items"], name, all));
            }
            NodeValue::Number(number) => {
                let value = number.as_f64().unwrap_or_default();
                let least = schema["minimum"].as_f64();
                let most = schema["maximum"].as_f64();
                if least.is_some_and(|least| value < least) || most.is_some_and(|most| value > most)
                {
                    let range = [
                        least.map(|least| format!("at least {least}")),
                        most.map(|most| format!("at most {most}")),
                    ];
                    let range: Vec<String> = range.into_iter().flatten().collect();
                    all.push(
                        Diagnostic::error(format!("`{name}` is {number}"))
                            .at(node.span)
                            .label(range.join(", ")),
                    );
                    return false;
                }
            }
            _ => {}
        }
        true
    }

    /// Checks the choice of the node's type. If there is none, the error lists all types.
    fn check_choices(
        &self,
        node: &mut ValueNode,
        choices: &'a [Json],
        name: &str,
        all: &mut Diagnostics,
    ) -> bool {
        let flat = self.flat(choices);
        match flat.iter().find(|choice| self.is_kind(node, choice)) {
            Some(choice) => self.check(node, choice, name, all),
            None => {
                let mut wanted: Vec<String> =
                    flat.iter().flat_map(|choice| kinds(choice)).collect();
                wanted.dedup();
                all.push(
                    Diagnostic::error(format!("`{name}` is {}", article(&node.value)))
                        .at(node.span)
                        .label(format!("use {}", wanted.join(" or "))),
                );
                false
            }
        }
    }

    fn flat(&self, choices: &'a [Json]) -> Vec<&'a Json> {
        let mut flat = Vec::new();
        for choice in choices {
            let choice = self.resolved(choice);
            match choice["anyOf"].as_array() {
                Some(inner) => flat.extend(self.flat(inner)),
                None => flat.push(choice),
            }
        }
        flat
    }

    fn is_kind(&self, node: &ValueNode, schema: &Json) -> bool {
        let is = |kind: &str| match (&node.value, kind) {
            (NodeValue::Table(_), "object")
            | (NodeValue::List(_), "array")
            | (NodeValue::Text(_), "string")
            | (NodeValue::Number(_), "number")
            | (NodeValue::Switch(_), "boolean") => true,
            (NodeValue::Number(number), "integer") => !number.is_f64(),
            _ => false,
        };
        match &schema["type"] {
            Json::String(kind) => is(kind),
            Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).any(is),
            _ => true,
        }
    }

    /// Whether a member of a table is valid and may stay.
    fn check_member(
        &self,
        entry: &mut TableEntry,
        schema: &'a Json,
        name: &str,
        all: &mut Diagnostics,
    ) -> bool {
        let properties = schema["properties"].as_object();
        let rest = &schema["additionalProperties"];
        let known = properties.and_then(|known| known.get(&entry.key));
        if let Some(schema) = known.or(Some(rest).filter(|rest| rest.is_object())) {
            return self.check(&mut entry.node, schema, &entry.key, all);
        }
        let names = || properties.into_iter().flat_map(|known| known.keys());
        let unknown =
            Diagnostic::error(format!("unknown key `{}` in {name}", entry.key)).at(entry.key_span);
        all.push(match nearest(&entry.key, names().map(String::as_str)) {
            Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
            None => {
                let shown = names().filter(|name| !name.starts_with('$'));
                let shown: Vec<&str> = shown.map(String::as_str).collect();
                unknown.help(format!("valid keys: {}", shown.join(", ")))
            }
        });
        false
    }
}

/// The types that a schema allows, as text.
fn kinds(schema: &Json) -> Vec<String> {
    let word = |kind: &str| match kind {
        "object" => Some("a table"),
        "array" => Some("a list"),
        "string" => Some("a text"),
        "number" => Some("a number"),
        "integer" => Some("a whole number"),
        "boolean" => Some("true or false"),
        _ => None,
    };
    let names: Vec<&str> = match &schema["type"] {
        Json::String(kind) => vec![kind],
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    names
        .into_iter()
        .filter_map(word)
        .map(str::to_owned)
        .collect()
}

fn article(value: &NodeValue) -> &'static str {
    match value {
        NodeValue::Table(_) => "a table",
        NodeValue::List(_) => "a list",
        NodeValue::Text(_) => "a text",
        NodeValue::Number(_) => "a number",
        NodeValue::Switch(_) => "true or false",
        NodeValue::Nothing => "empty",
    }
}
