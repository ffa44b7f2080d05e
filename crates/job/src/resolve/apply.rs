//! Applies the options of one section to a job, and reports every error of the section.

use crate::diagnostic::{Diagnostic, Diagnostics, OptionProblem, nearest};
use crate::env::Env;
use crate::options::{
    self, JobBuilder, OptionRow, OptionSupport, OptionValue, ValueKind, engine_options,
};
use crate::plan::{Engine, GivenOption};
use crate::source::Span;
use crate::syntax::{OptionEntry, Section};
use crate::value::{Bytes, ValueError};

/// The options of a section.
pub(super) struct SectionOptions {
    /// All options in the order of the section, for the report.
    pub(super) given: Vec<GivenOption>,
    /// Engine-specific options.
    pub(super) engine_options: Vec<(&'static OptionRow, Span)>,
}

/// Whether the option applies to the engine.
pub(super) fn has_option(engine: Engine, row: &OptionRow) -> bool {
    let engines: &[&str] = match engine {
        // The backend choice picks one of these.
        Engine::Auto => &["io_uring", "libaio", "psync"],
        _ => &[engine.name()],
    };
    row.engines.is_empty() || row.engines.iter().any(|name| engines.contains(name))
}

/// Whether the job's engine is refused. If so, its engine-specific options are not checked: the
/// engine is the error.
pub(super) fn is_engine_refused(builder: &JobBuilder) -> bool {
    builder
        .engine
        .as_deref()
        .is_some_and(|name| engine_options::engine(name).is_err())
}

/// Applies a section. In a job file, `kb_base` is applied first, because it determines how sizes
/// are read. If an option is given twice, the last value wins.
pub(super) fn section(
    builder: &mut JobBuilder,
    section: &Section,
    env: &dyn Env,
    diagnostics: &mut Diagnostics,
) -> SectionOptions {
    let mut found = SectionOptions {
        given: Vec::new(),
        engine_options: Vec::new(),
    };
    let mut rows: Vec<(&OptionEntry, &'static OptionRow)> = Vec::new();
    for entry in &section.entries {
        match options::find_option(&entry.name.text) {
            Some(row) => rows.push((entry, row)),
            None => diagnostics.push(unknown(entry)),
        }
    }
    for (entry, row) in &rows {
        found.given.push(GivenOption {
            name: row.name.to_owned(),
            value: entry
                .value
                .as_ref()
                .map_or(String::new(), |value| value.text.clone()),
        });
    }
    // A refused engine is reported once, and engine-specific options are not checked against it.
    let engine_entry = rows.iter().rfind(|(_, row)| row.name == "ioengine");
    let refused_engine = match engine_entry.and_then(|(entry, _)| entry.value.as_ref()) {
        Some(value) => engine_options::engine(&value.text).is_err(),
        None => is_engine_refused(builder),
    };
    rows.sort_by_key(|(_, row)| option_rank(row.name, section.in_order));
    for (entry, row) in rows {
        builder.given.insert(row.name, entry.span());
        builder.own.insert(row.name);
        if !row.engines.is_empty() && refused_engine {
            continue;
        }
        match apply(builder, entry, row, env) {
            Ok(()) => {
                if !row.engines.is_empty() {
                    found.engine_options.push((row, entry.span()));
                }
                diagnostics.list.extend(swapped_suffix(builder, entry, row));
            }
            Err(error) => diagnostics.push(*error),
        }
    }
    found
}

/// Order in which options are applied: options that determine how others are read come first. As in
/// fio, `kb_base` keeps its position on a command line.
fn option_rank(name: &str, in_order: bool) -> u8 {
    match name {
        "kb_base" if !in_order => 0,
        "cmdprio_bssplit" => 2,
        _ => 1,
    }
}

fn apply(
    builder: &mut JobBuilder,
    entry: &OptionEntry,
    row: &OptionRow,
    env: &dyn Env,
) -> Result<(), Box<Diagnostic>> {
    let text = entry.value.as_ref().map(|value| value.text.as_str());
    if let OptionSupport::Unsupported { reason, instead } = row.status {
        if row.is_harmless(text) {
            return Ok(());
        }
        let unsupported = OptionProblem::Unsupported {
            option: row.name,
            reason,
            instead,
        };
        let error = Diagnostic::error_from(unsupported).at(entry.span());
        return Err(Box::new(error));
    }
    let may_stand_alone = matches!(row.kind, ValueKind::Flag | ValueKind::OptionalText);
    let is_blank = |text: &str| text.trim().is_empty();
    if text.is_none_or(is_blank) && !may_stand_alone {
        return Err(Box::new(missing(entry, row)));
    }
    (row.apply)(builder, &OptionValue { text, env })
        .map_err(|error| Box::new(wrong(entry, row, error)))
}

/// Warns about suffixes such as `KiB`: under `kb_base=1024`, fio reads `4KiB` as 4000 bytes, but
/// the user means 4096.
fn swapped_suffix(
    builder: &JobBuilder,
    entry: &OptionEntry,
    row: &OptionRow,
) -> Option<Diagnostic> {
    let is_size = matches!(
        row.kind,
        ValueKind::Size
            | ValueKind::SizeList
            | ValueKind::Extent
            | ValueKind::SizeRange
            | ValueKind::SizeRangeList
    ) || row.name == "bssplit";
    let value = entry.value.as_ref()?;
    let text = value.text.to_ascii_lowercase();
    let suffix = ["kib", "mib", "gib", "tib", "pib"]
        .into_iter()
        .find(|suffix| text.contains(*suffix))?;
    if !is_size || builder.bytes != Bytes::Binary {
        return None;
    }
    let swapped = OptionProblem::SwappedSuffix { suffix };
    Some(Diagnostic::warning_from(swapped).at(value.span))
}

fn missing(entry: &OptionEntry, row: &OptionRow) -> Diagnostic {
    let missing = OptionProblem::MissingValue {
        option: row.name,
        accepted: row.kind.describe(),
    };
    with_unset_vars(Diagnostic::error_from(missing).at(entry.span()), entry)
}

fn wrong(entry: &OptionEntry, row: &OptionRow, error: ValueError) -> Diagnostic {
    let value = entry.value.as_ref().map_or("", |value| value.text.as_str());
    let option = row.name;
    let mut diagnostic = Diagnostic::error_from(
        match options::later_options::reason_of_value(option, value) {
            Some(reason) => OptionProblem::UnsupportedValue {
                option,
                value: value.to_owned(),
                reason,
            },
            None => OptionProblem::WrongValue {
                option,
                problem: error.message,
                help: error.help,
            },
        },
    );
    diagnostic.span = Some(match (&entry.value, error.part) {
        (Some(value), Some(part)) => value.part(part),
        (Some(value), None) if value.span.start < value.span.end => value.span,
        _ => entry.span(),
    });
    if let Some(value) = &entry.value
        && !value.verbatim
    {
        diagnostic = diagnostic.label(format!("this is `{}`", value.text));
    }
    with_unset_vars(diagnostic, entry)
}

fn with_unset_vars(mut diagnostic: Diagnostic, entry: &OptionEntry) -> Diagnostic {
    for name in &entry.unset_vars {
        diagnostic = diagnostic.help(format!("the environment variable {name} is not set"));
    }
    diagnostic
}

fn unknown(entry: &OptionEntry) -> Diagnostic {
    let name = &entry.name.text;
    let unknown = match name.is_empty() {
        true => Diagnostic::error_from(OptionProblem::MissingName),
        false => Diagnostic::unknown_option(name),
    };
    let span = match entry.name.span {
        span if span.start < span.end => span,
        _ => entry.span(),
    };
    let error = with_unset_vars(unknown.at(span), entry);
    // In `iodepth 4` and `rw: read`, only the equals sign is missing.
    if let Some((first, rest)) = name.split_once([' ', '\t', ':'])
        && options::find_option(first).is_some()
        && entry.value.is_none()
    {
        let rest = rest.trim_start_matches([' ', '\t', ':']);
        return error.help(format!("write `{first}={rest}`"));
    }
    match nearest(name, options::list_options().flat_map(OptionRow::names)) {
        Some(meant) => error.help(format!("did you mean `{meant}`?")),
        None => error.help("`iosonde fio --cmdhelp=all` lists the options"),
    }
}
