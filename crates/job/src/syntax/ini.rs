//! Parses job files: `[section]` lines, `name=value` lines, comments and `include`.

use super::{OptionEntry, Section, expand};
use crate::diagnostic::{Diagnostic, Diagnostics, SyntaxProblem};
use crate::env::Env;
use crate::source::{Span, Spanned};

/// Limit on the nesting of include files, as in fio.
const MAX_INCLUDE_DEPTH: usize = 16;

/// Limit on the `include` lines of one job file. Without it, 16 nested files of 20 lines each would
/// be read 20^16 times.
const MAX_INCLUDES: usize = 1000;

/// Reads a job file; `-` is standard input. `from` is the span that names the file, if any.
pub(crate) fn read_job_file(
    path: &str,
    from: Option<Span>,
    env: &dyn Env,
    diagnostics: &mut Diagnostics,
) -> Vec<Section> {
    let read = match path {
        "-" => env.read_stdin(),
        _ => env.read_file(path),
    };
    match read {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let name = if path == "-" { "standard input" } else { path };
            parse(name, text, env, diagnostics)
        }
        Err(error) => {
            diagnostics.push(unreadable("job file", path, &error, from));
            Vec::new()
        }
    }
}

/// Parses the text of the job file `name`.
pub fn parse(
    name: &str,
    text: String,
    env: &dyn Env,
    diagnostics: &mut Diagnostics,
) -> Vec<Section> {
    let text = unmarked(text);
    let source = diagnostics.sources.add(name, text.clone());
    let mut reader = IniReader {
        env,
        diagnostics,
        sections: Vec::new(),
        path: name,
        orphan_reported: false,
        open: vec![name.to_owned()],
        included: 0,
    };
    reader.job_file(source, &text);
    reader.sections
}

struct IniReader<'a> {
    env: &'a dyn Env,
    diagnostics: &'a mut Diagnostics,
    sections: Vec<Section>,
    path: &'a str,
    orphan_reported: bool,
    /// Files that are being read, from the job file inwards.
    open: Vec<String>,
    /// Number of `include` lines so far.
    included: usize,
}

/// A line without comment and surrounding blanks, and its start in the source.
struct IniLine<'t> {
    text: &'t str,
    raw: &'t str,
    start: usize,
}

impl IniLine<'_> {
    fn span(&self, source: usize) -> Span {
        Span {
            source,
            start: self.start,
            end: self.start + self.text.len(),
        }
    }
}

/// Returns the lines that are not empty. As in fio, `;` and `#` start a comment anywhere in a line.
fn lines(text: &str) -> impl Iterator<Item = IniLine<'_>> {
    let mut offset = 0;
    text.split_inclusive('\n').filter_map(move |whole| {
        let start = offset + (whole.len() - whole.trim_start().len());
        offset += whole.len();
        let raw = whole.trim();
        let text = raw[..raw.find([';', '#']).unwrap_or(raw.len())].trim_end();
        (!text.is_empty()).then_some(IniLine { text, raw, start })
    })
}

impl IniReader<'_> {
    fn job_file(&mut self, source: usize, text: &str) {
        for line in lines(text) {
            if line.raw.starts_with('[') {
                self.header(source, &line);
            } else if let Some((path, span)) = include(source, &line) {
                self.include(&path, span, 1);
            } else {
                self.entry(source, &line);
            }
        }
    }

    fn header(&mut self, source: usize, line: &IniLine<'_>) {
        // A `;` in a section's name does not start a comment if the closing bracket follows it.
        let text = if line.text.ends_with(']') {
            line.text
        } else {
            &line.raw[..line.raw.rfind(']').map_or(0, |at| at + 1)]
        };
        let Some(name) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
            let error = Diagnostic::error_from(SyntaxProblem::UnclosedSection);
            let error = error.at(line.span(source));
            self.diagnostics.push(error);
            // The options below belong to this section, not to the section above.
            let name = Spanned::verbatim(line.text.trim_start_matches('['), line.span(source));
            self.sections.push(Section::new(name));
            return;
        };
        let span = Span {
            source,
            start: line.start + 1,
            end: line.start + 1 + name.len(),
        };
        self.sections
            .push(Section::new(Spanned::verbatim(name, span)));
    }

    fn include(&mut self, path: &str, span: Span, depth: usize) {
        if depth > MAX_INCLUDE_DEPTH {
            let too_deep = SyntaxProblem::IncludeTooDeep {
                path: path.to_owned(),
                limit: MAX_INCLUDE_DEPTH,
            };
            let error = Diagnostic::error_from(too_deep).at(span);
            return self.diagnostics.push(error);
        }
        self.included += 1;
        if self.included > MAX_INCLUDES {
            // The first line above the limit reports the error; later lines do not repeat it.
            if self.included == MAX_INCLUDES + 1 {
                let limit = MAX_INCLUDES;
                let too_many = SyntaxProblem::TooManyIncludes { limit };
                self.diagnostics
                    .push(Diagnostic::error_from(too_many).at(span));
            }
            return;
        }
        let beside = self
            .path
            .rfind('/')
            .map(|slash| format!("{}/{path}", &self.path[..slash]));
        let is_open = |path: &String| self.open.contains(path);
        if self.open.iter().any(|open| open == path) || beside.as_ref().is_some_and(is_open) {
            let path = path.to_owned();
            let error = Diagnostic::error_from(SyntaxProblem::IncludesItself { path }).at(span);
            return self.diagnostics.push(error);
        }
        let mut found = self.env.read_file(path);
        let mut found_path = path.to_owned();
        if let (Err(_), Some(beside)) = (&found, beside)
            && let Ok(bytes) = self.env.read_file(&beside)
        {
            found = Ok(bytes);
            found_path = beside;
        }
        match found {
            Ok(bytes) => {
                let text = unmarked(String::from_utf8_lossy(&bytes).into_owned());
                self.open.push(found_path.clone());
                self.included(&found_path, &text, depth);
                self.open.pop();
            }
            Err(error) => {
                let error = unreadable("include file", path, &error, Some(span));
                self.diagnostics.push(error);
            }
        }
    }

    fn included(&mut self, path: &str, text: &str, depth: usize) {
        let source = self.diagnostics.sources.add(path, text);
        for line in lines(text) {
            if line.raw.starts_with('[') {
                let error = Diagnostic::error_from(SyntaxProblem::SectionInInclude);
                return self.diagnostics.push(error.at(line.span(source)));
            } else if let Some((path, span)) = include(source, &line) {
                self.include(&path, span, depth + 1);
            } else {
                self.entry(source, &line);
            }
        }
    }

    fn entry(&mut self, source: usize, line: &IniLine<'_>) {
        let entry = split(source, line, self.env);
        match self.sections.last_mut() {
            Some(section) => section.entries.push(entry),
            None if self.orphan_reported => {}
            None => {
                self.orphan_reported = true;
                let error = Diagnostic::error_from(SyntaxProblem::OptionBeforeSection);
                self.diagnostics.push(error.at(line.span(source)));
            }
        }
    }
}

/// Removes the byte order mark that editors on Windows put before a file's text.
fn unmarked(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// Returns the path of an `include` line and its span.
fn include(source: usize, line: &IniLine<'_>) -> Option<(String, Span)> {
    let rest = line.text.strip_prefix("include")?;
    let path = rest.trim_start();
    if path.is_empty() || path.len() == rest.len() || path.starts_with('=') {
        return None;
    }
    let span = Span {
        start: line.start + line.text.len() - path.len(),
        ..line.span(source)
    };
    Some((path.to_owned(), span))
}

fn split(source: usize, line: &IniLine<'_>, env: &dyn Env) -> OptionEntry {
    let (expanded, unset_vars) = expand::variables(line.text, env);
    let (raw_name, raw_value) = halves(line.text);
    let (name, value) = halves(&expanded);
    let locate = |part: &str| {
        // Both halves are slices of the line, so the offset in the line gives the span.
        let start = line.start + (part.as_ptr() as usize - line.text.as_ptr() as usize);
        Span {
            source,
            start,
            end: start + part.len(),
        }
    };
    let spanned = |text: &str, raw: Option<&str>| Spanned {
        text: text.to_owned(),
        span: raw.map_or(line.span(source), locate),
        verbatim: raw == Some(text),
    };
    let mut value = value.map(|value| spanned(value, raw_value));
    if let Some(value) = &mut value
        && let Some(text) = expand::keywords(&value.text, env)
    {
        value.text = text;
        value.verbatim = false;
    }
    OptionEntry {
        name: spanned(name, Some(raw_name)),
        value,
        unset_vars,
    }
}

/// Splits a line at the first equals sign and trims both halves.
fn halves(line: &str) -> (&str, Option<&str>) {
    match line.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (line.trim(), None),
    }
}

fn unreadable(
    kind: &'static str,
    path: &str,
    error: &std::io::Error,
    from: Option<Span>,
) -> Diagnostic {
    let mut unreadable = Diagnostic::error_from(SyntaxProblem::UnreadableFile {
        kind,
        path: path.to_owned(),
        error: crate::errno::describe(error),
    });
    unreadable.span = from;
    unreadable
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::DiagnosticCause;
    use crate::env::FakeEnv;
    use crate::syntax::SectionKind;
    use proptest::prelude::*;

    fn parsed(text: &str, env: &FakeEnv) -> (Vec<Section>, Diagnostics) {
        let mut diagnostics = Diagnostics::default();
        let sections = parse("dir/test.fio", text.to_owned(), env, &mut diagnostics);
        (sections, diagnostics)
    }

    /// Returns the cause of the first diagnostic.
    fn cause(diagnostics: &Diagnostics) -> SyntaxProblem {
        match diagnostics.list[0].cause.as_deref() {
            Some(DiagnosticCause::Syntax(problem)) => problem.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn entries(section: &Section) -> Vec<(String, Option<String>)> {
        section
            .entries
            .iter()
            .map(|entry| {
                let value = entry.value.as_ref().map(|value| value.text.clone());
                (entry.name.text.clone(), value)
            })
            .collect()
    }

    #[test]
    fn sections_options_and_comments_are_parsed() {
        let text =
            "; a\n  # b\n[global]\nrw = randread ; why\nthread\n\n[one]#x\n size=1m\n[globally]\n";
        let (sections, diagnostics) = parsed(text, &FakeEnv::new());
        assert!(diagnostics.list.is_empty(), "{diagnostics}");
        assert_eq!(sections.len(), 3);
        assert_eq!(sections[0].kind, SectionKind::Global);
        assert_eq!(
            entries(&sections[0]),
            [
                ("rw".into(), Some("randread".into())),
                ("thread".into(), None)
            ]
        );
        let value = sections[0].entries[0].value.as_ref().unwrap();
        assert_eq!(diagnostics.sources.slice(value.span), "randread");
        assert_eq!(sections[1].name.text, "one");
        assert_eq!(sections[2].kind, SectionKind::Global);
    }

    #[test]
    fn variables_and_keywords_expand() {
        let env = FakeEnv::new().set("X", "bs=8k");
        let (sections, _) = parsed("[a]\n${X}\nsize=2*$pagesize\nname=${N}\n", &env);
        assert_eq!(
            entries(&sections[0]),
            [
                ("bs".into(), Some("8k".into())),
                ("size".into(), Some("8192".into())),
                ("name".into(), Some("".into()))
            ]
        );
        assert_eq!(sections[0].entries[2].unset_vars, ["N"]);
    }

    #[test]
    fn byte_order_mark_is_skipped() {
        let env = FakeEnv::new()
            .file("marked.fio", "\u{feff}[a]\ninclude marked.inc\n")
            .file("marked.inc", "\u{feff}rw=read\n");
        let mut diagnostics = Diagnostics::default();
        let sections = read_job_file("marked.fio", None, &env, &mut diagnostics);
        assert!(diagnostics.list.is_empty(), "{diagnostics}");
        assert_eq!(entries(&sections[0])[0].0, "rw");
    }

    #[test]
    fn includes_are_looked_up_as_given_and_beside_the_file() {
        let env = FakeEnv::new()
            .file("here.inc", "bs=4k\ninclude deep.inc\n")
            .file("dir/deep.inc", "thread\n");
        let (sections, diagnostics) = parsed("[a]\ninclude here.inc\nrw=read\n", &env);
        assert!(diagnostics.list.is_empty(), "{diagnostics}");
        let names: Vec<_> = entries(&sections[0]).into_iter().map(|e| e.0).collect();
        assert_eq!(names, ["bs", "thread", "rw"]);
    }

    #[test]
    fn include_cycle_is_an_error() {
        let env = FakeEnv::new()
            .file("loop.inc", "include other.inc\n")
            .file("dir/other.inc", "include loop.inc\n");
        let (_, diagnostics) = parsed("[a]\ninclude loop.inc\n", &env);
        assert_eq!(diagnostics.list.len(), 1, "{diagnostics}");
        let path = "loop.inc".to_owned();
        assert_eq!(cause(&diagnostics), SyntaxProblem::IncludesItself { path });
    }

    #[test]
    fn includes_inside_each_other_have_a_bound() {
        let mut env = FakeEnv::new().file("17.inc", "bs=4k\n");
        for depth in 1..17 {
            let text = format!("include {}.inc\n", depth + 1);
            env = env.file(&format!("{depth}.inc"), &text);
        }
        assert!(parsed("[a]\ninclude 2.inc\n", &env).1.list.is_empty());
        let (_, diagnostics) = parsed("[a]\ninclude 1.inc\n", &env);
        let too_deep = SyntaxProblem::IncludeTooDeep {
            path: "17.inc".to_owned(),
            limit: 16,
        };
        assert_eq!(cause(&diagnostics), too_deep);
    }

    #[test]
    fn includes_of_all_files_together_have_a_bound() {
        // 20 lines in each of 16 files: 20^16 reads without a limit.
        let mut env = FakeEnv::new().file("16.inc", "bs=4k\n");
        for depth in 1..16 {
            let text = format!("include {}.inc\n", depth + 1).repeat(20);
            env = env.file(&format!("{depth}.inc"), &text);
        }
        let (_, diagnostics) = parsed("[a]\ninclude 1.inc\n", &env);
        assert_eq!(diagnostics.list.len(), 1, "{diagnostics}");
        let limit = 1000;
        assert_eq!(
            cause(&diagnostics),
            SyntaxProblem::TooManyIncludes { limit }
        );
        // The same file may be included repeatedly.
        let text = format!("[a]\n{}", "include 16.inc\n".repeat(1000));
        assert!(parsed(&text, &env).1.list.is_empty());
    }

    #[test]
    fn structural_errors_are_reported() {
        let missing = SyntaxProblem::UnreadableFile {
            kind: "include file",
            path: "nope".to_owned(),
            error: crate::errno::describe(&std::io::ErrorKind::NotFound.into()),
        };
        for (text, expected) in [
            ("rw=read\nbs=4k\n[a]\n", SyntaxProblem::OptionBeforeSection),
            ("[a\nrw=read\n", SyntaxProblem::UnclosedSection),
            ("[a]\ninclude nope\n", missing),
        ] {
            let (_, diagnostics) = parsed(text, &FakeEnv::new());
            assert_eq!(diagnostics.list.len(), 1, "{text}");
            assert_eq!(cause(&diagnostics), expected);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(\\PC|\n|\\[|\\]|=|;|\\$\\{|\\}| ){0,80}") {
            let env = FakeEnv::new().set("A", "ö=");
            let (sections, diagnostics) = parsed(&text, &env);
            for entry in sections.iter().flat_map(|section| &section.entries) {
                let source = diagnostics.sources.get(entry.span().source).unwrap();
                prop_assert!(source.text.get(entry.span().start..entry.span().end).is_some());
            }
            diagnostics.render(true);
        }
    }
}
