//! `--output-format`: the formats of a report, and their order.

use super::terse::{TerseVersion, write_terse};
use super::{idle, json, text, write_json};
use crate::run::RunResult;
use iosonde_job::CommandLine;
use iosonde_job::cmdline::{IdleProfile, OutputFormat};
use std::io::{self, Write};
use std::str::FromStr;

/// fio's value for an unknown time left, in seconds.
const UNKNOWN_ETA: u64 = i32::MAX as u64;

/// Requested formats, one or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// `normal`.
    pub normal: bool,
    /// `terse`, also called `minimal` and `csv`.
    pub terse: Option<TerseVersion>,
    /// `json` or `json+`.
    pub json: Option<Json>,
    /// `--idle-prof`: idle time of the processors, in the normal output and in JSON.
    pub idle: Option<IdleProfile>,
}

/// The two kinds of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Json {
    /// `json`.
    Plain,
    /// `json+`: with the latency bins.
    Plus,
}

/// The default of fio: normal output only.
impl Default for Formats {
    fn default() -> Formats {
        Formats {
            normal: true,
            terse: None,
            json: None,
            idle: None,
        }
    }
}

impl Formats {
    /// Returns the formats that the command line requests, with version and `--idle-prof`.
    pub fn asked(command: &CommandLine) -> Formats {
        let has = |format| command.formats.contains(&format);
        let terse = has(OutputFormat::Terse) || command.append_terse;
        let json = if has(OutputFormat::JsonPlus) {
            Some(Json::Plus)
        } else {
            has(OutputFormat::Json).then_some(Json::Plain)
        };
        Formats {
            normal: has(OutputFormat::Normal) || command.formats.is_empty(),
            terse: terse.then(|| {
                TerseVersion::from_number(command.terse_version.into()).unwrap_or_default()
            }),
            json,
            idle: command.idle_profile,
        }
    }
}

/// A word in `--output-format` that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown output format {0:?}: valid formats are normal, terse, json and json+")]
pub struct UnknownFormat(pub String);

/// Parses a list such as `normal,json+`. Terse gets its default version.
impl FromStr for Formats {
    type Err = UnknownFormat;

    fn from_str(list: &str) -> Result<Formats, UnknownFormat> {
        let mut formats = Formats {
            normal: false,
            ..Formats::default()
        };
        for word in list.split(',') {
            match word {
                "normal" => formats.normal = true,
                "terse" | "minimal" | "csv" => formats.terse = Some(TerseVersion::default()),
                "json" => formats.json = formats.json.or(Some(Json::Plain)),
                "json+" => formats.json = Some(Json::Plus),
                _ => return Err(UnknownFormat(word.to_owned())),
            }
        }
        Ok(formats)
    }
}

/// Writes `result` in `formats`, in fio's order: terse, JSON, normal. The caller prints the
/// [`header`](super::header()) of the normal format before the run.
pub fn write(out: &mut impl Write, result: &RunResult, formats: &Formats) -> io::Result<()> {
    write_so_far(out, result, formats, Some(0))
}

/// Writes the statistics so far as [`write()`] does. `left_ns` is the time left, if known.
pub fn write_so_far(
    out: &mut impl Write,
    result: &RunResult,
    formats: &Formats,
    left_ns: Option<u64>,
) -> io::Result<()> {
    if let Some(version) = formats.terse {
        write_terse(out, result, version)?;
    }
    if let Some(kind) = formats.json {
        let mut root = json::fio_json(result, kind == Json::Plus);
        let eta_s = left_ns.map_or(UNKNOWN_ETA, |ns| ns.div_ceil(1_000_000_000));
        for job in root["jobs"].as_array_mut().into_iter().flatten() {
            job["eta"] = eta_s.into();
        }
        let idleness = formats
            .idle
            .and_then(|which| idle::cpu_idleness_json(&result.series, which));
        if let Some(idleness) = idleness {
            root["cpu_idleness"] = idleness;
        }
        write_json(out, &root)?;
    }
    if formats.normal {
        text::write_normal(out, result)?;
        if let Some(which) = formats.idle {
            idle::write_normal(out, &result.series, which)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_format_lists_are_parsed() {
        assert_eq!("normal".parse(), Ok(Formats::default()));
        let all: Formats = "normal,terse,json".parse().unwrap();
        assert_eq!(
            all,
            Formats {
                normal: true,
                terse: Some(TerseVersion::V3),
                json: Some(Json::Plain),
                idle: None,
            }
        );
        for both in ["json,json+", "json+,json", "json+"] {
            let formats: Formats = both.parse().unwrap();
            assert_eq!((formats.normal, formats.json), (false, Some(Json::Plus)));
        }
        for wrong in ["", "JSON", "normal,", " json", "xml"] {
            assert!(wrong.parse::<Formats>().is_err(), "{wrong:?}");
        }
    }
}
