//! Reads suite files with their includes and variables, and reports all errors together.

use super::model::{SuiteFile, suite_schema};
use super::text::{self, NodeValue, TableEntry, ValueNode};
use super::{builtin, shape};
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics, nearest};
use iosonde_job::read_json_value;
use iosonde_job::source::Span;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Deepest nesting of includes.
const DEEPEST: usize = 16;

/// Most includes of a suite. Without this limit, 16 files of two includes each would make 2^16.
const MOST_INCLUDES: usize = 256;

/// Most workloads of a suite with its includes, and most targets. Each is compared with all others.
const MOST_WORKLOADS: usize = 1000;

/// Most expectations of a suite with its includes. Each is compared with the figures of all runs.
const MOST_EXPECTATIONS: usize = 10_000;

/// A parsed suite with its includes.
pub(super) struct ParsedSuite {
    /// The outermost file, whose `name`, `about`, `repetitions` and `targets` are in force.
    pub(super) file: SuiteFile,
    /// Workloads with their nodes. A workload replaces an included one of the same name.
    pub(super) workloads: Vec<WorkloadNode>,
    /// Targets as nodes.
    pub(super) targets: Vec<ValueNode>,
    /// Expectations of the whole suite.
    pub(super) expect: Vec<ValueNode>,
    /// Labels with the position of each.
    pub(super) labels: BTreeMap<String, (String, Span)>,
    /// Values of variables.
    pub(super) variables: BTreeMap<String, String>,
    /// Whether workloads or variables could not be read, so that unknown names may belong to them.
    pub(super) is_partial: bool,
}

/// A workload and the directory of its file.
pub(super) struct WorkloadNode {
    pub(super) node: ValueNode,
    pub(super) directory: String,
    /// The span of the workload, with members that the schema check has removed.
    pub(super) extent: Span,
}

/// Reads the valid parts of a suite and its includes. `overrides` are `--var` variables.
pub(super) fn read_suite(
    name: &str,
    text: &str,
    overrides: &BTreeMap<String, String>,
    env: &dyn Env,
    all: &mut Diagnostics,
) -> ParsedSuite {
    let mut reader = SuiteReader {
        env,
        all,
        written: ParsedSuite {
            file: SuiteFile::default(),
            workloads: Vec::new(),
            targets: Vec::new(),
            expect: Vec::new(),
            labels: BTreeMap::new(),
            variables: BTreeMap::new(),
            is_partial: false,
        },
        open: Vec::new(),
        included: 0,
        expected: 0,
    };
    reader.file(name, text);
    let mut written = reader.written;
    for name in overrides.keys() {
        if !written.is_partial && !written.variables.contains_key(name) {
            let unknown = Diagnostic::error(format!("the suite has no variable `{name}`"));
            let names = written.variables.keys().map(String::as_str);
            all.push(match nearest(name, names.clone()) {
                Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
                None => unknown.help(match names.collect::<Vec<_>>()[..] {
                    [] => "the suite has no variables".to_owned(),
                    ref names => format!("variables of the suite: {}", names.join(", ")),
                }),
            });
        }
    }
    written.variables.extend(overrides.clone());
    written
}

struct SuiteReader<'a> {
    env: &'a dyn Env,
    all: &'a mut Diagnostics,
    written: ParsedSuite,
    /// Files being read, to detect cycles.
    open: Vec<String>,
    /// Includes counted so far.
    included: usize,
    /// Expectations counted so far.
    expected: usize,
}

impl SuiteReader<'_> {
    fn file(&mut self, name: &str, text: &str) {
        let source = self.all.sources.add(name, text);
        let mut node = match text::parse_source(name, source, text) {
            Ok(node) => node,
            Err(errors) => {
                self.written.is_partial = true;
                return self.all.list.extend(errors);
            }
        };
        if let Some(error) = self.too_many(&node) {
            self.written.is_partial = true;
            return self.all.push(error.help("split the suite"));
        }
        let before = self.all.list.len();
        let items = node.get("workload").map_or(&[][..], ValueNode::items);
        let workloads: Vec<Span> = items.iter().map(ValueNode::extent).collect();
        let nameless = node.entries().iter().filter(|entry| !may_name(entry));
        let nameless: Vec<Span> = nameless
            .flat_map(|entry| [entry.key_span, entry.node.extent()])
            .collect();
        let is_left = shape::check(&mut node, &suite_schema(), self.all);
        let wrong = &self.all.list[before..];
        self.written.is_partial |= wrong.iter().any(|one| {
            let known = workloads.iter().chain(&nameless);
            one.span
                .is_none_or(|place| !known.clone().any(|part| contains_span(*part, place)))
        });
        if !is_left {
            return;
        }
        let Ok(file) = read_json_value::<SuiteFile>(&node.json()) else {
            // The schema comes from the same types, so only a number out of range fails here.
            self.written.is_partial = true;
            self.all.push(Diagnostic::error(format!(
                "{name}: a number is out of range"
            )));
            return;
        };
        self.open.push(name.to_owned());
        if let Some(includes) = node.get("include") {
            for include in includes.items() {
                self.include(include, name);
            }
        }
        self.open.pop();
        self.merge_file(&node, file, name, &workloads);
    }

    /// The error if the suite exceeds a limit with this file.
    fn too_many(&mut self, node: &ValueNode) -> Option<Diagnostic> {
        let workloads = node.get("workload").map_or(&[][..], ValueNode::items);
        let targets = node.get("targets").map_or(&[][..], ValueNode::items);
        let lists = workloads.iter().chain([node]);
        let lists = lists.filter_map(|part| part.get("expect"));
        let expectations: Vec<&ValueNode> = lists.flat_map(ValueNode::items).collect();
        self.expected += expectations.len();
        let counts = [
            (
                "workloads",
                self.written.workloads.len() + workloads.len(),
                MOST_WORKLOADS,
                workloads.first(),
            ),
            ("targets", targets.len(), MOST_WORKLOADS, targets.first()),
            (
                "expectations",
                self.expected,
                MOST_EXPECTATIONS,
                expectations.first().copied(),
            ),
        ];
        counts.into_iter().find_map(|(what, count, most, first)| {
            let first = first.filter(|_| count > most)?;
            let many = format!("the suite has {count} {what}, more than the limit of {most}");
            Some(Diagnostic::error(many).at(first.span))
        })
    }

    fn include(&mut self, node: &ValueNode, from: &str) {
        let NodeValue::Text(wanted) = &node.value else {
            return;
        };
        let path = resolve_path(from, wanted);
        let fail = |problem: String| Diagnostic::error(problem).at(node.span);
        if self.open.contains(&path) {
            let error = fail(format!("{path} includes itself"));
            return self.all.push(error.help("remove this include"));
        }
        if self.open.len() >= DEEPEST {
            let error = fail(format!("{path} is nested too deeply"));
            let help = format!("includes may be nested at most {DEEPEST} deep");
            return self.all.push(error.help(help));
        }
        self.included += 1;
        if self.included > MOST_INCLUDES {
            self.written.is_partial = true;
            // One error is enough for any number of includes.
            if self.included == MOST_INCLUDES + 1 {
                let error = fail(format!("the suite has more than {MOST_INCLUDES} includes"));
                self.all.push(error.help("include each file once"));
            }
            return;
        }
        if let Some(suite) = builtin::find_builtin(wanted) {
            return self.file(&suite.file_name(), suite.text);
        }
        match self.env.read_file(&path) {
            Ok(bytes) => self.file(&path, &String::from_utf8_lossy(&bytes)),
            Err(error) => {
                self.written.is_partial = true;
                let unreadable = fail(format!("{path}: {}", plain(&error)));
                let meant = nearest(wanted, builtin::ALL.iter().map(|suite| suite.name));
                self.all.push(match meant {
                    Some(meant) => {
                        unreadable.help(format!("did you mean the built-in suite `{meant}`?"))
                    }
                    None => unreadable
                        .help("use a path relative to this file, or the name of a built-in suite"),
                });
            }
        }
    }

    /// Merges a file into the suite. Its members override those of its includes.
    fn merge_file(&mut self, node: &ValueNode, file: SuiteFile, name: &str, extents: &[Span]) {
        let directory = directory_of(name);
        for workload in node.get("workload").map_or(&[][..], ValueNode::items) {
            let piece = WorkloadNode {
                node: workload.clone(),
                directory: directory.clone(),
                extent: extents
                    .iter()
                    .copied()
                    .find(|extent| contains_span(*extent, workload.span))
                    .unwrap_or(workload.span),
            };
            let named = |node: &ValueNode| node.get("name").map(ValueNode::json);
            let before = &mut self.written.workloads;
            let source = workload.span.source;
            let place = before.iter().position(|other| {
                named(&other.node) == named(workload) && other.node.span.source != source
            });
            match place {
                Some(place) => before[place] = piece,
                None => before.push(piece),
            }
        }
        if let Some(targets) = node.get("targets").filter(|node| !node.items().is_empty()) {
            self.written.targets = targets.items().to_vec();
        }
        let expect = node.get("expect").map_or(&[][..], ValueNode::items);
        self.written.expect.extend(expect.iter().cloned());
        let texts = |from: &BTreeMap<String, super::model::Scalar>| {
            let texts = from.iter().map(|(key, value)| (key.clone(), value.text()));
            texts.collect::<Vec<_>>()
        };
        for (key, value) in texts(&file.labels) {
            let place = node.get("labels").and_then(|labels| labels.get(&key));
            let span = place.map_or(node.span, |node| node.span);
            self.written.labels.insert(key, (value, span));
        }
        self.written.variables.extend(texts(&file.variables));
        let inner = std::mem::replace(&mut self.written.file, file);
        let outer = &mut self.written.file;
        outer.about = outer.about.take().or(inner.about);
        outer.repetitions = outer.repetitions.or(inner.repetitions);
        if outer.pods.is_none() && outer.per_node.is_none() {
            (outer.pods, outer.per_node) = (inner.pods, inner.per_node);
        }
    }
}

/// Whether a member may define names that other members use: workloads, variables or includes.
fn may_name(entry: &TableEntry) -> bool {
    /// The members of a suite, and whether each defines names.
    const MEMBERS: [(&str, bool); 11] = [
        ("workload", true),
        ("variables", true),
        ("include", true),
        ("targets", false),
        ("expect", false),
        ("labels", false),
        ("repetitions", false),
        ("pods", false),
        ("per_node", false),
        ("name", false),
        ("about", false),
    ];
    let meant = nearest(&entry.key, MEMBERS.iter().map(|(name, _)| *name));
    let is_meant = |(name, _): &&(&str, bool)| *name == entry.key || Some(*name) == meant;
    match MEMBERS.iter().find(is_meant) {
        Some((_, brings_names)) => *brings_names,
        None => !matches!(
            entry.node.value,
            NodeValue::Number(_) | NodeValue::Switch(_)
        ),
    }
}

/// Whether `outer` contains `inner`.
pub(super) fn contains_span(outer: Span, inner: Span) -> bool {
    outer.source == inner.source && outer.start <= inner.start && inner.end <= outer.end
}

impl WorkloadNode {
    /// Resolves a path relative to the directory of the workload's file. A path in the current
    /// directory stays relative.
    pub(super) fn resolve_path(&self, wanted: &str) -> String {
        match wanted.starts_with('/') || self.directory.is_empty() {
            true => wanted.to_owned(),
            false => {
                let path = format!("{}/{wanted}", self.directory);
                path.trim_start_matches("./").to_owned()
            }
        }
    }
}

/// Resolves a path relative to the directory of a file.
fn resolve_path(from: &str, wanted: &str) -> String {
    let directory = directory_of(from);
    match wanted.starts_with('/') || directory.is_empty() {
        true => wanted.to_owned(),
        false => format!("{directory}/{wanted}"),
    }
}

fn directory_of(name: &str) -> String {
    let parent = Path::new(name).parent();
    parent.map_or_else(String::new, |path| path.to_string_lossy().into_owned())
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        _ => iosonde_job::errno::describe(error),
    }
}

/// Substitutes variables in all texts except job files, which resolve variables themselves.
pub(super) fn substitute(
    node: &mut ValueNode,
    variables: &BTreeMap<String, String>,
    env: &dyn Env,
    all: &mut Diagnostics,
) {
    match &mut node.value {
        NodeValue::Table(entries) => {
            for TableEntry { key, node, .. } in entries {
                if key != "job" {
                    substitute(node, variables, env, all);
                }
            }
        }
        NodeValue::List(items) => {
            for item in items {
                substitute(item, variables, env, all);
            }
        }
        NodeValue::Text(text) if text.contains("${") => {
            *text = substitute_text(text, node.span, variables, env, all);
        }
        _ => {}
    }
}

/// Substitutes the variables of a text.
pub(super) fn substitute_text(
    text: &str,
    span: Span,
    variables: &BTreeMap<String, String>,
    env: &dyn Env,
    all: &mut Diagnostics,
) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        made.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            rest = &rest[before.len()..];
            break;
        };
        match variables.get(name).cloned().or_else(|| env.var(name)) {
            Some(value) => made.push_str(&value),
            None => all.push(unknown_variable(name, variables).at(span)),
        }
        rest = behind;
    }
    made + rest
}

/// The error for an undefined variable.
pub(super) fn unknown_variable(name: &str, variables: &BTreeMap<String, String>) -> Diagnostic {
    let unknown = Diagnostic::error(format!("there is no variable `{name}`"));
    match nearest(name, variables.keys().map(String::as_str)) {
        Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
        None => unknown.help("set it under [variables], with --var, or in the environment"),
    }
}
