//! The job file that a sweep varies.

use crate::failure::CommandError;
use iosonde_job::Env;
use iosonde_study::sweep::Base;
use std::path::Path;

/// Limit on the size of a job file. Longer files are targets.
const MOST_JOB_FILE_BYTES: u64 = 1 << 20;

/// Whether the file has a `[section]` or, if it cannot be accessed, its name ends in `.fio`.
pub(super) fn is_job_file(name: &str) -> bool {
    let path = Path::new(name);
    let Ok(facts) = std::fs::metadata(path) else {
        return path.extension().is_some_and(|ending| ending == "fio");
    };
    if !facts.is_file() || facts.len() > MOST_JOB_FILE_BYTES {
        return false;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let is_section = |line: &str| {
        let line = line.trim_start_matches('\u{feff}').trim();
        line.starts_with('[') && line.contains(']')
    };
    text.lines().any(is_section)
}

/// Reads the job file as the base of the sweep.
pub(super) fn read_job_file(name: &str, env: &dyn Env) -> Result<Base, CommandError> {
    match env.read_file(name) {
        Ok(text) => Ok(Base::File {
            name: name.to_owned(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }),
        Err(error) => Err(CommandError::usage(
            format!("job file {name}: {}", iosonde_job::errno::describe(&error)),
            "name a readable job file",
        )),
    }
}

/// Text of the base.
pub(super) fn base_text(base: &Base) -> &str {
    match base {
        Base::Plain => "",
        Base::File { text, .. } => text,
    }
}
