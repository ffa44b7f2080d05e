//! Help, generated from the option tables.

#[cfg(test)]
mod options_document;

use crate::cmdline;
use crate::diagnostic::nearest;
use crate::options::{self, OptionRow, OptionSupport, engine_options};
use crate::syntax::command_line::Arity;
use std::fmt::Write;

/// Column where the descriptions of [`usage`] begin.
pub const DOC_COLUMN: usize = 30;

/// `--help`: the usage line, two examples and the program's options. `program` is the name of the
/// program.
pub fn usage(program: &str) -> String {
    let mut text = format!(
        "{program} [options] [job options] <job file(s)>\n\n\
         Examples:\n  \
         {program} job.fio\n  \
         {program} --name=t --rw=randread --bs=4k --size=1g --direct=1 --runtime=10\n\n"
    );
    for option in cmdline::OPTIONS {
        if let OptionSupport::Unsupported { .. } = option.status {
            continue;
        }
        let value = match (option.value, option.arity) {
            ("", _) => String::new(),
            (value, Arity::Optional) => format!("[={value}]"),
            (value, _) => format!("={value}"),
        };
        let name = format!("--{}{value}", option.name);
        let width = DOC_COLUMN - 2;
        let _ = writeln!(text, "  {name:<width$}{}", option.doc);
    }
    text
}

/// `--cmdhelp`: describes one option, or lists all. The error is a sentence for the user.
pub fn command_help(name: Option<&str>) -> Result<String, String> {
    match name {
        None | Some("all") => Ok(option_list(
            options::list_options().filter(|row| row.engines.is_empty()),
        )),
        Some(name) => options::find_option(name)
            .map(describe)
            .ok_or_else(|| unknown(name)),
    }
}

/// `--enghelp`: lists the engines or the options of one engine (`io_uring`), or describes one of
/// its options (`io_uring,hipri`). The list has the engines of Ceph only in a program with Ceph.
pub fn engine_help(engine: Option<&str>, has_ceph: bool) -> Result<String, String> {
    let Some(text) = engine else {
        let mut text = String::from("Available engines:\n");
        let engines = engine_options::ENGINES.iter();
        for (engine, doc) in engines.filter(|(engine, _)| has_ceph || !engine.is_ceph()) {
            let _ = writeln!(text, "  {:<10}{doc}", engine.name());
        }
        return Ok(text);
    };
    let (name, option) = match text.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (text, None),
    };
    engine_options::engine(name).map_err(|error| match error.help {
        Some(help) => format!("{}; {help}", error.message),
        None => error.message,
    })?;
    let mut rows = options::list_options().filter(|row| row.engines.contains(&name));
    match option {
        Some(option) => rows
            .find(|row| row.names().any(|known| known == option))
            .map(describe)
            .ok_or_else(|| format!("the engine {name} has no option `{option}`")),
        None => {
            let text = option_list(rows);
            match text.is_empty() {
                true => Ok(format!("The engine {name} has no specific options.\n")),
                false => Ok(text),
            }
        }
    }
}

fn option_list<'a>(rows: impl Iterator<Item = &'a OptionRow>) -> String {
    let mut text = String::new();
    for row in rows {
        let mark = match row.status {
            OptionSupport::Unsupported { .. } => "(not supported) ",
            _ => "",
        };
        let _ = writeln!(text, "{:<25} {mark}{}", row.name, row.doc);
    }
    text
}

fn describe(row: &OptionRow) -> String {
    let mut text = format!("{}: {}\n", row.name, row.doc);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:>8}: {value}");
        }
    };
    line("alias", &row.aliases.join(", "));
    line("value", &row.kind.describe());
    line("default", row.default);
    line("engines", &row.engines.join(", "));
    match row.status {
        OptionSupport::Supported => {}
        OptionSupport::Accepted(meaning) => line("here", meaning),
        OptionSupport::Unsupported { reason, instead } => {
            line("here", &format!("not supported: {reason}"));
            line("nearest", instead);
        }
    }
    text
}

fn unknown(name: &str) -> String {
    let meant = nearest(name, options::list_options().flat_map(OptionRow::names));
    match meant {
        Some(meant) => format!("there is no option `{name}`; did you mean `{meant}`?"),
        None => format!("there is no option `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_on_one_option_says_all_about_it() {
        insta::assert_snapshot!(command_help(Some("blocksize")).unwrap(), @r"
        bs: Block size: bytes per I/O.
             alias: blocksize
             value: size; read,write,trim
           default: 4096
        ");
        insta::assert_snapshot!(command_help(Some("write_barrier")).unwrap(), @r"
        write_barrier: Make every Nth write a barrier.
             value: whole number from 0
           default: 0
              here: not supported: Linux has no barrier writes
           nearest: fdatasync=N
        ");
        assert!(
            command_help(Some("iodpth"))
                .unwrap_err()
                .contains("`iodepth`")
        );
    }

    #[test]
    fn long_option_name_stands_apart_from_its_text() {
        for line in command_help(Some("all")).unwrap().lines() {
            let name = line.split(' ').next().unwrap();
            assert!(options::find_option(name).is_some(), "{line}");
        }
    }

    #[test]
    fn help_on_options_of_words_lists_the_words() {
        for (name, word) in [
            ("rw", "randtrimwrite"),
            ("ioengine", "io_uring"),
            ("verify", "crc32c"),
            ("mem", "mmaphuge"),
            ("random_distribution", "zipf"),
            ("file_service_type", "roundrobin"),
        ] {
            let help = command_help(Some(name)).unwrap();
            let values = help
                .lines()
                .find(|line| line.contains("value: one of "))
                .unwrap();
            assert!(values.contains(word), "{help}");
        }
    }

    #[test]
    fn help_on_engines_lists_them_and_their_options() {
        assert!(engine_help(None, true).unwrap().contains("io_uring"));
        assert!(
            engine_help(Some("io_uring"), true)
                .unwrap()
                .contains("hipri")
        );
        assert!(
            engine_help(Some("io_uring,hipri"), true)
                .unwrap()
                .contains("Poll")
        );
        assert!(
            engine_help(Some("psync"), true)
                .unwrap()
                .contains("no specific options")
        );
        assert!(
            engine_help(Some("splice"), true)
                .unwrap_err()
                .contains("not supported")
        );
    }

    #[test]
    fn engine_list_without_ceph_has_no_ceph_engine() {
        for (has_ceph, engine) in [
            (true, "rbd"),
            (true, "rados"),
            (false, "rbd"),
            (false, "rados"),
        ] {
            let list = engine_help(None, has_ceph).unwrap();
            let is_listed = list
                .lines()
                .any(|line| line.split_whitespace().next() == Some(engine));
            assert_eq!(is_listed, has_ceph, "{engine}: {list}");
        }
    }

    #[test]
    fn usage_omits_unsupported_options() {
        let text = usage("fio");
        assert!(text.contains("--output-format=LIST") && !text.contains("--daemonize"));
    }

    #[test]
    fn usage_begins_with_two_examples() {
        let text = usage("fio");
        let lines = text.lines().skip(1).take(4);
        let examples = lines.filter(|line| line.starts_with("  fio ")).count();
        assert_eq!(examples, 2, "{text}");
    }
}
