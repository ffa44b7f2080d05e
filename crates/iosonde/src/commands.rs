//! One module for each command, and the way to it.

pub(crate) mod fio;
pub(crate) mod limits;
pub(crate) mod probe;

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::output::Output;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::path::Path;

/// Runs what the words ask for. The first word is the name that the program was called by.
pub(crate) fn dispatch(words: &[OsString]) -> Result<(), Failure> {
    if let Some(rest) = fio_words(words) {
        return fio::run(rest);
    }
    match Cli::try_parse_from(words)?.command {
        Command::Probe(args) => probe::run(&args),
        Command::Fio { args } => fio::run(&args),
        Command::Limits(args) => limits::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "iosonde", &mut script);
            Output::Standard.write(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(anyhow::Error::from)?;
            Output::Standard.write(&page)
        }
    }
}

/// fio's words, if fio is what was called: `fio ...` or `iosonde fio ...`. They must not pass through clap, which would
/// give its own meaning to `--help`, `--version` and `--`.
fn fio_words(words: &[OsString]) -> Option<&[OsString]> {
    let name = Path::new(words.first()?).file_name()?;
    if name == "fio" {
        Some(&words[1..])
    } else if words.get(1)? == "fio" {
        Some(&words[2..])
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let rest = fio_words(&words)?.iter();
        Some(
            rest.map(|word| word.to_string_lossy().into_owned())
                .collect(),
        )
    }

    #[test]
    fn fio_is_called_by_either_name() {
        let expected = Some(vec!["--help".to_owned(), "x.fio".to_owned()]);
        assert_eq!(words("/usr/local/bin/fio --help x.fio"), expected);
        assert_eq!(words("target/iosonde fio --help x.fio"), expected);
        assert_eq!(words("iosonde probe fio"), None);
        assert_eq!(words("iosonde"), None);
    }
}
