//! Parses command lines by the rules of getopt_long_only(3), with which fio reads `--bs=4k`, `--bs
//! 4k`, `-bs=4k` and `--runt 3`.

use super::{OptionEntry, Section, expand};
use crate::diagnostic::{Diagnostic, Diagnostics, SyntaxProblem, nearest};
use crate::env::Env;
use crate::source::{Span, Spanned};

/// Whether an option takes a value, and where the value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// No value.
    None,
    /// An optional value, after an equals sign only.
    Optional,
    /// An optional value, after an equals sign or in the next argument, unless that starts with two
    /// dashes.
    Lenient,
    /// A required value, after an equals sign or in the next argument.
    Required,
}

/// The owner of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The program: `--output`.
    Program,
    /// A job: `--bs`.
    Job,
}

/// An option name that may follow the dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownOption {
    /// The name as typed.
    pub name: &'static str,
    /// The canonical name, which aliases share.
    pub canonical: &'static str,
    /// Whether the name must be written in full. A prefix of it matches only other names.
    pub whole: bool,
    /// Whether the option takes a value.
    pub arity: Arity,
    /// Owner of the option.
    pub owner: Owner,
}

/// A parsed command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandWords {
    /// Options of the program.
    pub program: Vec<OptionEntry>,
    /// Options before the first `--name`, and the `--name` groups. Sections of the kind `Global`
    /// set defaults.
    pub sections: Vec<Section>,
    /// The remaining words: job files.
    pub files: Vec<Spanned>,
}

/// Parses a command line. Job options go to the section that the last `--name` opened.
pub fn parse(
    args: &[String],
    known: &[KnownOption],
    env: &dyn Env,
    diagnostics: &mut Diagnostics,
) -> CommandWords {
    let source = diagnostics.sources.add("command line", args.join(" "));
    let mut start = 0;
    let words: Vec<Spanned> = args
        .iter()
        .map(|arg| {
            let end = start + arg.len();
            let span = Span { source, start, end };
            start = end + 1;
            Spanned::verbatim(arg.as_str(), span)
        })
        .collect();
    let mut parser = CommandLineParser {
        known,
        env,
        diagnostics,
        result: CommandWords::default(),
    };
    parser.parse_words(&words);
    parser.result
}

struct CommandLineParser<'a> {
    known: &'a [KnownOption],
    env: &'a dyn Env,
    diagnostics: &'a mut Diagnostics,
    result: CommandWords,
}

impl CommandLineParser<'_> {
    fn parse_words(&mut self, words: &[Spanned]) {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word.text == "--" {
                self.result.files.extend(rest.cloned());
                return;
            }
            if !word.text.starts_with('-') || word.text == "-" {
                self.result.files.push(word.clone());
                continue;
            }
            let (name, mut value) = halves(word);
            let Some(option) = self.find(&name) else {
                continue;
            };
            let follows = rest.clone().next();
            let takes_next = match option.arity {
                Arity::Required => true,
                Arity::Lenient => follows.is_some_and(|next| !next.text.starts_with("--")),
                Arity::None | Arity::Optional => false,
            };
            if takes_next && value.is_none() {
                value = rest.next().cloned();
                if value.is_none() {
                    let option = name.text.clone();
                    let missing = SyntaxProblem::MissingArgument { option };
                    self.diagnostics
                        .push(Diagnostic::error_from(missing).at(name.span));
                    continue;
                }
            }
            self.place(option, name, value);
        }
    }

    /// Finds the option by its name or by a unique prefix of the name.
    fn find(&mut self, name: &Spanned) -> Option<KnownOption> {
        let typed = name.text.as_str();
        if let Some(exact) = self.known.iter().find(|known| known.name == typed) {
            return Some(*exact);
        }
        let mut matches: Vec<&KnownOption> = self
            .known
            .iter()
            .filter(|known| !known.whole && !typed.is_empty() && known.name.starts_with(typed))
            .collect();
        matches.dedup_by_key(|known| known.canonical);
        match matches.as_slice() {
            [only] => Some(**only),
            [] => {
                self.unknown(name);
                None
            }
            several => {
                let ambiguous = SyntaxProblem::AmbiguousOption {
                    typed: typed.to_owned(),
                    names: several.iter().map(|known| known.name).collect(),
                };
                let error = Diagnostic::error_from(ambiguous).at(name.span);
                self.diagnostics.push(error);
                None
            }
        }
    }

    fn unknown(&mut self, name: &Spanned) {
        let mut error = Diagnostic::unknown_option(&name.text).at(name.span);
        let names = self.known.iter().map(|known| known.name);
        if let Some(meant) = nearest(&name.text, names) {
            error = error.help(format!("did you mean `--{meant}`?"));
        }
        self.diagnostics.push(error);
    }

    fn place(&mut self, option: KnownOption, mut name: Spanned, mut value: Option<Spanned>) {
        if name.text != option.name {
            name.text = option.name.to_owned();
            name.verbatim = false;
        }
        if let Some(value) = &mut value
            && let Some(text) = expand::keywords(&value.text, self.env)
        {
            value.text = text;
            value.verbatim = false;
        }
        if option.owner == Owner::Job && option.canonical == "name" {
            let title = value.clone().unwrap_or_else(|| name.clone());
            self.result.sections.push(Section::from_command_line(title));
        } else if option.owner == Owner::Job && self.result.sections.is_empty() {
            let title = Spanned::verbatim("global", name.span);
            self.result.sections.push(Section::from_command_line(title));
        }
        let entry = OptionEntry {
            name,
            value,
            unset_vars: Vec::new(),
        };
        match (option.owner, self.result.sections.last_mut()) {
            (Owner::Job, Some(section)) => section.entries.push(entry),
            _ => self.result.program.push(entry),
        }
    }
}

/// Splits `--name=value` or `-name=value` into name and value.
fn halves(word: &Spanned) -> (Spanned, Option<Spanned>) {
    let text = &word.text;
    let dashes = if text.starts_with("--") { 2 } else { 1 };
    let equals = text.find('=').unwrap_or(text.len()).max(dashes);
    let part = |from: usize, to: usize| {
        let span = Span {
            source: word.span.source,
            start: word.span.start + from,
            end: word.span.start + to,
        };
        Spanned::verbatim(&text[from..to], span)
    };
    let value = (equals < text.len()).then(|| part(equals + 1, text.len()));
    (part(dashes, equals), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::DiagnosticCause;
    use crate::env::FakeEnv;
    use crate::syntax::SectionKind;
    use proptest::prelude::*;

    const KNOWN: &[KnownOption] = &[
        known("name", "name", Arity::Required, Owner::Job),
        known("bs", "bs", Arity::Required, Owner::Job),
        known("runtime", "runtime", Arity::Required, Owner::Job),
        known("rate", "rate", Arity::Required, Owner::Job),
        known("rate_min", "rate_min", Arity::Required, Owner::Job),
        known("ratemin", "rate_min", Arity::Required, Owner::Job),
        known("time_based", "time_based", Arity::Optional, Owner::Job),
        known("output", "output", Arity::Required, Owner::Program),
        known("minimal", "minimal", Arity::None, Owner::Program),
    ];

    const fn known(
        name: &'static str,
        canonical: &'static str,
        arity: Arity,
        owner: Owner,
    ) -> KnownOption {
        KnownOption {
            name,
            canonical,
            whole: false,
            arity,
            owner,
        }
    }

    fn parsed(line: &str) -> (CommandWords, Diagnostics) {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut diagnostics = Diagnostics::default();
        let words = parse(&args, KNOWN, &FakeEnv::new(), &mut diagnostics);
        (words, diagnostics)
    }

    fn text(entry: &OptionEntry) -> String {
        match &entry.value {
            Some(value) => format!("{}={}", entry.name.text, value.text),
            None => entry.name.text.clone(),
        }
    }

    #[test]
    fn options_before_the_first_name_are_global() {
        let (words, diagnostics) = parsed(
            "a.fio --bs=4k --time_based --name x -bs 8k --runtim=3 --output=o b.fio -minimal",
        );
        assert!(diagnostics.list.is_empty(), "{diagnostics}");
        assert_eq!(words.sections.len(), 2);
        assert_eq!(words.sections[0].kind, SectionKind::Global);
        let texts = |section: &Section| {
            section
                .entries
                .iter()
                .map(text)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(texts(&words.sections[0]), "bs=4k time_based");
        assert_eq!(texts(&words.sections[1]), "name=x bs=8k runtime=3");
        let program: Vec<_> = words.program.iter().map(text).collect();
        assert_eq!(program, ["output=o", "minimal"]);
        let files: Vec<_> = words.files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(files, ["a.fio", "b.fio"]);
    }

    #[test]
    fn option_without_value_leaves_the_next_word() {
        let (words, _) = parsed("--name=a --time_based 0");
        assert_eq!(words.files[0].text, "0");
    }

    #[test]
    fn prefixes_must_be_unique_and_exact_names_win() {
        let (_, diagnostics) = parsed("--rat=3");
        let cause = diagnostics.list[0].cause.as_deref();
        let is_ambiguous = matches!(
            cause,
            Some(DiagnosticCause::Syntax(SyntaxProblem::AmbiguousOption { typed, names }))
                if typed == "rat" && names.contains(&"rate")
        );
        assert!(is_ambiguous, "{cause:?}");
        let (words, diagnostics) = parsed("--name=a --rate=3");
        assert!(diagnostics.list.is_empty());
        assert_eq!(text(&words.sections[0].entries[1]), "rate=3");
        let (_, diagnostics) = parsed("--ouptut=3");
        assert!(diagnostics.list[0].is_unknown_option());
        assert_eq!(diagnostics.list[0].help, ["did you mean `--output`?"]);
    }

    #[test]
    fn double_dash_ends_the_options() {
        let (words, _) = parsed("-- --bs=4k -");
        assert_eq!(words.files.len(), 2);
        let (words, _) = parsed("-");
        assert_eq!(words.files[0].text, "-");
    }

    proptest! {
        #[test]
        fn arbitrary_arguments_never_panic(
            args in prop::collection::vec("(-|--)?(\\PC){0,6}(=\\PC{0,5})?", 0..6)
        ) {
            let mut diagnostics = Diagnostics::default();
            parse(&args, KNOWN, &FakeEnv::new(), &mut diagnostics);
            diagnostics.render(false);
        }
    }
}
