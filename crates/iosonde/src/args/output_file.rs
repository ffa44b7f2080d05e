//! Options that name a file to write: names that end in another format are refused at once.

use super::Cli;
use clap::CommandFactory;
use clap::builder::{PathBufValueParser, TypedValueParser};
use std::error::Error;
use std::fmt;
use std::path::PathBuf;

/// Ends of names that promise a format which is not text.
const OTHER_FORMATS: [&str; 25] = [
    "bz2", "doc", "docx", "eps", "gif", "gz", "htm", "html", "jpeg", "jpg", "ods", "odt",
    "parquet", "pdf", "png", "pptx", "ps", "svg", "tar", "webp", "xls", "xlsx", "xz", "zip", "zst",
];

/// Ends of names that promise another format of text than XML.
const OTHER_TEXTS: [&str; 7] = ["csv", "json", "jsonl", "markdown", "md", "yaml", "yml"];

/// Ends of names that promise text, which is neither a page nor an archive.
const PLAIN_TEXTS: [&str; 3] = ["log", "txt", "xml"];

/// Format of the file that an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFileKind {
    /// Text in the format of `--format`.
    Text,
    /// Text in the format of `--format`, or a page for a browser.
    TextOrPage,
    /// A page for a browser.
    Page,
    /// Verdicts as XML of JUnit.
    Junit,
    /// A recording as JSON lines.
    Recording,
    /// An archive of tar.
    Archive,
}

impl OutputFileKind {
    /// Whether a file with this end of its name, in lower case, can be of this kind.
    fn is_named_by(self, extension: &str) -> bool {
        let is_page = ["html", "htm"].contains(&extension);
        let is_text = !OTHER_FORMATS.contains(&extension);
        let promises_text = OTHER_TEXTS.contains(&extension) || PLAIN_TEXTS.contains(&extension);
        // Other ends, such as those of `mktemp` and of versions, promise nothing.
        let is_open = is_text && !promises_text;
        match self {
            OutputFileKind::Text | OutputFileKind::Recording => is_text,
            OutputFileKind::TextOrPage => is_text || is_page,
            OutputFileKind::Page => is_page || is_open,
            OutputFileKind::Junit => is_text && !OTHER_TEXTS.contains(&extension),
            OutputFileKind::Archive => extension == "tar" || is_open,
        }
    }
}

/// A name that ends in a format which its option does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputFileError {
    pub(crate) kind: OutputFileKind,
    pub(crate) path: PathBuf,
    /// End of the name in lower case.
    pub(crate) extension: String,
}

impl fmt::Display for OutputFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, extension) = (self.path.display(), &self.extension);
        match self.kind {
            OutputFileKind::Text | OutputFileKind::TextOrPage => {
                write!(formatter, "the result is not written as .{extension}")
            }
            OutputFileKind::Recording => {
                write!(formatter, "a recording is not written as .{extension}")
            }
            OutputFileKind::Page => write!(formatter, "{path} ends neither in .html nor in .htm"),
            OutputFileKind::Junit => {
                write!(formatter, "verdicts are not written as .{extension}")
            }
            OutputFileKind::Archive => write!(formatter, "{path} does not end in .tar"),
        }
    }
}

impl Error for OutputFileError {}

impl OutputFileError {
    /// The formats that exist. `option` is the option as typed, `command` its command as in
    /// `iosonde probe`.
    pub(super) fn remedy(&self, option: &str, command: &str) -> String {
        let example = |extension: &str| {
            let path = self.path.with_extension(extension);
            format!("{option} {}", path.display())
        };
        match self.kind {
            OutputFileKind::Text | OutputFileKind::TextOrPage => {
                let formats = match formats(command).as_slice() {
                    [] => String::new(),
                    all => format!("; --format selects one of {}", all.join(", ")),
                };
                let other = self.other_command(command).unwrap_or_default();
                format!("use {}{formats}{other}", example("txt"))
            }
            OutputFileKind::Recording => {
                format!("a recording is text of JSON lines: {}", example("jsonl"))
            }
            OutputFileKind::Page => {
                format!("a report is a page for a browser: {}", example("html"))
            }
            OutputFileKind::Junit => format!("JUnit's format is XML: {}", example("xml")),
            OutputFileKind::Archive => format!("an image is an archive of tar: {}", example("tar")),
        }
    }

    /// The command that writes stored results of `command` in a format like that of the name.
    fn other_command(&self, command: &str) -> Option<&'static str> {
        let keeps_results = option_values(command, "no-save").is_some();
        match self.extension.as_str() {
            "htm" | "html" | "pdf" if keeps_results => {
                Some("; `iosonde report -o report.html` then writes a page")
            }
            "png" | "svg" if keeps_results => Some("; `iosonde plot` then draws charts"),
            _ => None,
        }
    }
}

/// Values of the option `--format` of a command.
fn formats(command: &str) -> Vec<String> {
    option_values(command, "format").unwrap_or_default()
}

/// Possible values of a long option of a command. `None`: the command does not have the option.
fn option_values(command: &str, long: &str) -> Option<Vec<String>> {
    let mut found = Cli::command();
    for name in command.split(' ').skip(1) {
        found = found.find_subcommand(name)?.clone();
    }
    let option = found
        .get_arguments()
        .find(|option| option.get_long() == Some(long))?;
    let values = option.get_possible_values().into_iter();
    Some(values.map(|value| value.get_name().to_owned()).collect())
}

/// Parses the name of a file of this kind. Names without an end, such as `/dev/stdout`, fit all.
pub(crate) fn output_file(kind: OutputFileKind) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path: PathBuf| checked(kind, path))
}

/// Parses the name of a file with text in the format of `--format`.
pub(crate) fn text_file() -> impl TypedValueParser<Value = PathBuf> {
    output_file(OutputFileKind::Text)
}

fn checked(kind: OutputFileKind, path: PathBuf) -> Result<PathBuf, OutputFileError> {
    let Some(extension) = path.extension() else {
        return Ok(path);
    };
    let extension = extension.to_string_lossy().to_lowercase();
    match kind.is_named_by(&extension) {
        true => Ok(path),
        false => Err(OutputFileError {
            kind,
            path,
            extension,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::argument_error::argument_error;
    use super::*;
    use clap::error::ErrorKind;
    use clap::{Command, Parser};

    /// Options that name files to write.
    const FILE_OPTIONS: [&str; 5] = ["output", "report", "junit", "record", "outfile"];

    /// Adds a command line for each such option of a command and of those below it.
    fn add_lines(command: &Command, words: &str, lines: &mut Vec<String>) {
        // The result of `plot` depends on its other options.
        if command.get_name() == "plot" {
            return;
        }
        let longs = command
            .get_arguments()
            .filter_map(|option| option.get_long());
        let named = longs.filter(|long| FILE_OPTIONS.contains(long));
        lines.extend(named.map(|long| format!("{words} --{long}=x.pdf")));
        for below in command.get_subcommands() {
            add_lines(below, &format!("{words} {}", below.get_name()), lines);
        }
    }

    #[test]
    fn pdf_is_refused_by_each_option_of_a_file() {
        let mut lines = Vec::new();
        add_lines(&Cli::command(), "iosonde", &mut lines);
        assert!(lines.len() > 15, "{lines:?}");
        for line in &lines {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}: {error}");
        }
    }

    #[test]
    fn file_of_fitting_or_no_type_is_accepted() {
        let fits = |kind, name: &str| checked(kind, name.into()).is_ok();
        let pages = ["r.html", "r.HTM", "r", "/dev/stdout", "a.b/r"];
        for name in pages.into_iter().chain(["tmp.Xq3fZ0", "report-0.1.0"]) {
            assert!(fits(OutputFileKind::Page, name), "{name}");
        }
        for name in ["r", "r.txt", "r.json", "r.2026-11-27", "history.db", "r.md"] {
            assert!(fits(OutputFileKind::Text, name), "{name}");
        }
        assert!(fits(OutputFileKind::TextOrPage, "r.html"));
        // A name of mktemp promises nothing.
        for name in ["r.XML", "tmp.Xq3fZ0", "r"] {
            assert!(fits(OutputFileKind::Junit, name), "{name}");
        }
        for name in ["agent.tar", "agent-0.1.0", "img.oci", "tmp.Xq3fZ0"] {
            assert!(fits(OutputFileKind::Archive, name), "{name}");
        }
    }

    #[test]
    fn file_of_another_type_is_refused_with_its_kind() {
        let refused = |kind, name: &str| checked(kind, name.into()).unwrap_err();
        for name in ["r.pdf", "r.html.gz", "r.json", "r.txt"] {
            let error = refused(OutputFileKind::Page, name);
            assert_eq!(error.kind, OutputFileKind::Page, "{name}");
        }
        for name in ["agent.tar.gz", "agent.zip", "agent.json", "agent.log"] {
            let error = refused(OutputFileKind::Archive, name);
            assert_eq!(error.kind, OutputFileKind::Archive, "{name}");
        }
        let error = refused(OutputFileKind::Text, "r.HTML");
        assert_eq!(error.extension, "html");
        assert_eq!(refused(OutputFileKind::Junit, "r.json").extension, "json");
    }

    #[test]
    fn refused_file_type_names_the_formats_that_exist() {
        let text = |line: &str, command: &str| {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            argument_error(error, command).text(false)
        };
        let report = text("iosonde run db . --report r.pdf", "iosonde run");
        let expected = "error: invalid value 'r.pdf' for '--report <FILE>': r.pdf ends neither in \
                        .html nor in .htm\nhelp: a report is a page for a browser: --report r.html";
        assert_eq!(report, expected);
        let output = text("iosonde probe . -o r.pdf", "iosonde probe");
        let expected = "error: invalid value 'r.pdf' for '--output <FILE>': the result is not \
                        written as .pdf\nhelp: use --output r.txt; --format selects one of table, \
                        json, csv, markdown, fio-json; `iosonde report -o report.html` then \
                        writes a page";
        assert_eq!(output, expected);
        let findings = text("iosonde doctor . -o r.pdf", "iosonde doctor");
        assert!(findings.ends_with("one of table, json"), "{findings}");
    }
}
