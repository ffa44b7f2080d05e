//! Arguments of the mode `serve`.

use crate::AgentFailure;
use crate::arguments::read_options;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Parameters of the mode `serve`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServeOptions {
    /// Path of the socket.
    pub(crate) socket: PathBuf,
    /// Time without requests after which an idle agent exits.
    pub(crate) idle: Duration,
    /// Time to wait for the first request: the client may first wait for all of its pods.
    pub(crate) first: Option<Duration>,
    /// Block device that plans write to.
    pub(crate) device: Option<PathBuf>,
    /// Directory of the run, created at the start and removed at the end with its contents.
    pub(crate) scratch: Option<PathBuf>,
    /// Whether the container belongs to other programs: its termination message is not written.
    pub(crate) is_foreign: bool,
}

impl ServeOptions {
    /// Parses the arguments after `serve`.
    pub(crate) fn read(words: &[OsString]) -> Result<ServeOptions, AgentFailure> {
        let mut options = ServeOptions {
            socket: crate::SOCKET.into(),
            idle: Duration::from_secs(120),
            first: None,
            device: None,
            scratch: None,
            is_foreign: false,
        };
        let operands = read_options(words, |name, words| {
            match name {
                "--socket" => options.socket = words.value(name)?.into(),
                "--scratch" => options.scratch = Some(words.value(name)?.into()),
                "--device" => options.device = Some(words.value(name)?.into()),
                "--foreign-container" => options.is_foreign = true,
                "--idle" => options.idle = seconds(name, words.value(name)?)?,
                "--first" => options.first = Some(seconds(name, words.value(name)?)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if let Some(word) = operands.first() {
            let text = format!("{} is no option", word.to_string_lossy());
            return Err(AgentFailure::new(2, text));
        }
        Ok(options)
    }

    /// Returns the volume that plans use.
    pub(crate) fn volume(&self) -> impl Iterator<Item = &Path> {
        self.scratch
            .iter()
            .chain(&self.device)
            .map(PathBuf::as_path)
    }
}

fn seconds(name: &str, value: &OsString) -> Result<Duration, AgentFailure> {
    let text = value.to_str();
    text.and_then(|text| text.parse().map(Duration::from_secs).ok())
        .ok_or_else(|| AgentFailure::new(2, format!("{name} needs whole seconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serve_options_are_parsed_or_named_in_errors() {
        let read = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            ServeOptions::read(&words)
        };
        let options = read(&[
            "--socket",
            "/s",
            "--idle",
            "5",
            "--first",
            "60",
            "--device",
            "/dev/x",
            "--foreign-container",
        ])
        .unwrap();
        let expected = ServeOptions {
            socket: "/s".into(),
            idle: Duration::from_secs(5),
            first: Some(Duration::from_secs(60)),
            device: Some("/dev/x".into()),
            scratch: None,
            is_foreign: true,
        };
        assert_eq!(options, expected);
        let message = |words: &[&str]| read(words).unwrap_err().message;
        assert!(message(&["--idle", "x"]).contains("whole seconds"));
        assert!(message(&["--sock", "x"]).contains("--sock"));
        assert!(message(&["--idle"]).contains("needs a value"));
        assert!(message(&["idle", "5"]).contains("idle is no option"));
    }
}
