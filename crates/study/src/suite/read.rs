//! Suite files to one suite: includes taken in, variables put in, all errors told at once.

use super::model::{SuiteFile, suite_schema};
use super::text::{self, Entry, Node, Value};
use super::{builtin, shape};
use iosonde_job::Env;
use iosonde_job::diagnostic::{Diagnostic, Diagnostics, nearest};
use iosonde_job::source::Span;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Includes inside each other.
const DEEPEST: usize = 16;

/// Includes of all files of a suite together. Without a bound 16 files of two includes each would be 2^16.
const MOST_INCLUDES: usize = 256;

/// Workloads of a suite with its includes, and its targets. Each is held against the others.
const MOST_WORKLOADS: usize = 1000;

/// Expectations of a suite and of its workloads, with its includes. Each is held against the figures of all runs.
const MOST_EXPECTATIONS: usize = 10_000;

/// A suite as it was written, with all that it includes.
pub(super) struct Written {
    /// The outermost file: its name, `about`, `repetitions` and `targets` count.
    pub(super) file: SuiteFile,
    /// Workloads with the nodes they came from. One that has the name of an included one takes its place.
    pub(super) workloads: Vec<Piece>,
    /// Targets as nodes.
    pub(super) targets: Vec<Node>,
    /// Expectations of the whole suite.
    pub(super) expect: Vec<Node>,
    /// Labels, and where each stands.
    pub(super) labels: BTreeMap<String, (String, Span)>,
    /// Values of variables.
    pub(super) variables: BTreeMap<String, String>,
    /// Whether some workloads or variables could not be read, so that what is missing may be theirs.
    pub(super) is_partial: bool,
}

/// A workload and the directory that its file is in.
pub(super) struct Piece {
    pub(super) node: Node,
    pub(super) directory: String,
    /// All of it, with what had no place there.
    pub(super) extent: Span,
}

/// Reads a suite file with what it includes, as far as it can be read. `overrides` are variables of the command line.
pub(super) fn read(
    name: &str,
    text: &str,
    overrides: &BTreeMap<String, String>,
    env: &dyn Env,
    all: &mut Diagnostics,
) -> Written {
    let mut reader = Reader {
        env,
        all,
        written: Written {
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
                    [] => "it has none".to_owned(),
                    ref names => format!("it has {}", names.join(", ")),
                }),
            });
        }
    }
    written.variables.extend(overrides.clone());
    written
}

struct Reader<'a> {
    env: &'a dyn Env,
    all: &'a mut Diagnostics,
    written: Written,
    /// Files that are being read, for cycles.
    open: Vec<String>,
    /// Includes so far.
    included: usize,
    /// Expectations so far.
    expected: usize,
}

impl Reader<'_> {
    fn file(&mut self, name: &str, text: &str) {
        let source = self.all.sources.add(name, text);
        let mut node = match text::read(name, source, text) {
            Ok(node) => node,
            Err(errors) => {
                self.written.is_partial = true;
                return self.all.list.extend(errors);
            }
        };
        if let Some(error) = self.too_many(&node) {
            self.written.is_partial = true;
            return self.all.push(error.help("make several suites of it"));
        }
        let before = self.all.list.len();
        let items = node.get("workload").map_or(&[][..], Node::items);
        let workloads: Vec<Span> = items.iter().map(Node::extent).collect();
        let nameless = node.entries().iter().filter(|entry| !may_name(entry));
        let nameless: Vec<Span> = nameless
            .flat_map(|entry| [entry.key_span, entry.node.extent()])
            .collect();
        let is_left = shape::check(&mut node, &suite_schema(), self.all);
        let wrong = &self.all.list[before..];
        self.written.is_partial |= wrong.iter().any(|one| {
            let known = workloads.iter().chain(&nameless);
            one.span
                .is_none_or(|place| !known.clone().any(|part| holds(*part, place)))
        });
        if !is_left {
            return;
        }
        let Ok(file) = serde_json::from_value::<SuiteFile>(node.json()) else {
            // The schema is made from the same types, so this is a value that is out of range.
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
        self.take(&node, file, name, &workloads);
    }

    /// The error of a file with which the suite has more of something than it may have.
    fn too_many(&mut self, node: &Node) -> Option<Diagnostic> {
        let workloads = node.get("workload").map_or(&[][..], Node::items);
        let targets = node.get("targets").map_or(&[][..], Node::items);
        let lists = workloads.iter().chain([node]);
        let lists = lists.filter_map(|part| part.get("expect"));
        let expectations: Vec<&Node> = lists.flat_map(Node::items).collect();
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
            let many = format!("the suite has {count} {what}, more than {most}");
            Some(Diagnostic::error(many).at(first.span))
        })
    }

    fn include(&mut self, node: &Node, from: &str) {
        let Value::Text(wanted) = &node.value else {
            return;
        };
        let path = beside(from, wanted);
        let fail = |problem: String| Diagnostic::error(problem).at(node.span);
        if self.open.contains(&path) {
            let error = fail(format!("{path} includes itself"));
            return self.all.push(error.help("remove this include"));
        }
        if self.open.len() >= DEEPEST {
            let error = fail(format!("{path} is included too deeply"));
            let help = format!("a suite may have {DEEPEST} files inside each other");
            return self.all.push(error.help(help));
        }
        self.included += 1;
        if self.included > MOST_INCLUDES {
            self.written.is_partial = true;
            // One error is enough, of whatever number of includes.
            if self.included == MOST_INCLUDES + 1 {
                let error = fail(format!("the suite has more than {MOST_INCLUDES} includes"));
                self.all.push(error.help("include each file once"));
            }
            return;
        }
        if let Some(suite) = builtin::find(wanted) {
            return self.file(&suite.file_name(), suite.text);
        }
        match self.env.read_file(&path) {
            Ok(bytes) => self.file(&path, &String::from_utf8_lossy(&bytes)),
            Err(error) => {
                self.written.is_partial = true;
                let told = fail(format!("{path}: {}", plain(&error)));
                let meant = nearest(wanted, builtin::ALL.iter().map(|suite| suite.name));
                self.all.push(match meant {
                    Some(meant) => told.help(format!("did you mean the built-in suite `{meant}`?")),
                    None => told.help("name a file relative to this one, or a built-in suite"),
                });
            }
        }
    }

    /// Takes a file over what it includes.
    fn take(&mut self, node: &Node, file: SuiteFile, name: &str, extents: &[Span]) {
        let directory = directory_of(name);
        for workload in node.get("workload").map_or(&[][..], Node::items) {
            let piece = Piece {
                node: workload.clone(),
                directory: directory.clone(),
                extent: extents
                    .iter()
                    .copied()
                    .find(|extent| holds(*extent, workload.span))
                    .unwrap_or(workload.span),
            };
            let named = |node: &Node| node.get("name").map(Node::json);
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
        let expect = node.get("expect").map_or(&[][..], Node::items);
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
    }
}

/// Whether a member of a suite may bring names that other parts of it use: workloads, variables, or files with some.
fn may_name(entry: &Entry) -> bool {
    /// The members of a suite, with whether they bring names.
    const MEMBERS: [(&str, bool); 9] = [
        ("workload", true),
        ("variables", true),
        ("include", true),
        ("targets", false),
        ("expect", false),
        ("labels", false),
        ("repetitions", false),
        ("name", false),
        ("about", false),
    ];
    let meant = nearest(&entry.key, MEMBERS.iter().map(|(name, _)| *name));
    let is_meant = |(name, _): &&(&str, bool)| *name == entry.key || Some(*name) == meant;
    match MEMBERS.iter().find(is_meant) {
        Some((_, brings_names)) => *brings_names,
        None => !matches!(entry.node.value, Value::Number(_) | Value::Switch(_)),
    }
}

/// Whether one place lies within another.
pub(super) fn holds(outer: Span, inner: Span) -> bool {
    outer.source == inner.source && outer.start <= inner.start && inner.end <= outer.end
}

/// A path relative to the directory of a file.
pub(super) fn beside(from: &str, wanted: &str) -> String {
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
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}

/// Puts variables into all texts but job files, which look them up themselves.
pub(super) fn substitute(
    node: &mut Node,
    variables: &BTreeMap<String, String>,
    env: &dyn Env,
    all: &mut Diagnostics,
) {
    match &mut node.value {
        Value::Table(entries) => {
            for Entry { key, node, .. } in entries {
                if key != "job" {
                    substitute(node, variables, env, all);
                }
            }
        }
        Value::List(items) => {
            for item in items {
                substitute(item, variables, env, all);
            }
        }
        Value::Text(text) if text.contains("${") => {
            *text = filled(text, node.span, variables, env, all);
        }
        _ => {}
    }
}

/// A text with its variables put in.
pub(super) fn filled(
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

/// The error for a variable that nobody has set.
pub(super) fn unknown_variable(name: &str, variables: &BTreeMap<String, String>) -> Diagnostic {
    let unknown = Diagnostic::error(format!("there is no variable `{name}`"));
    match nearest(name, variables.keys().map(String::as_str)) {
        Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
        None => unknown.help("set it under [variables], with --var, or in the environment"),
    }
}
