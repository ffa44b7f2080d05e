//! What was stopped and could be resumed, as the commands that resume it.

use iosonde_machine::consent::ConsentedTarget;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::SystemTime;

/// Commands that are listed at most, the latest first.
const MOST_LISTED: usize = 5;

/// The first line of a journal.
#[derive(Serialize, Deserialize)]
pub(super) struct Begun {
    /// The command that began it.
    pub(super) command: CommandLine,
    /// What it may overwrite. `None` in journals of versions that did not note it.
    #[serde(default)]
    pub(super) consent: Option<Vec<ConsentedTarget>>,
}

/// A command, and where it was given.
#[derive(Serialize, Deserialize)]
pub(super) struct CommandLine {
    directory: String,
    words: Vec<String>,
}

impl CommandLine {
    /// The one that this process was started with.
    pub(super) fn of_this_process() -> CommandLine {
        let directory = std::env::current_dir().unwrap_or_default();
        CommandLine {
            directory: directory.to_string_lossy().into_owned(),
            words: std::env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        }
    }

    /// What a shell needs to resume it, wherever it is.
    fn resumed(&self) -> String {
        let words = self.words.iter().filter(|word| *word != "--resume");
        let words: Vec<String> = words.map(|word| quoted(word)).collect();
        format!(
            "cd {} && iosonde {} --resume",
            quoted(&self.directory),
            words.join(" ")
        )
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@~".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('~') {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The commands that resume what was stopped, of all journals in a directory that hold a result and that no process is writing.
pub(super) fn resumable(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(SystemTime, String)> = entries
        .filter_map(|entry| {
            let written_at = entry.metadata().ok()?.modified().ok()?;
            Some((written_at, stopped(&entry.path())?))
        })
        .collect();
    found.sort_by_key(|(written_at, _)| std::cmp::Reverse(*written_at));
    let mut commands: Vec<String> = Vec::new();
    for (_, command) in found {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands.truncate(MOST_LISTED);
    commands
}

/// The command that resumes a journal's study.
fn stopped(journal: &Path) -> Option<String> {
    let file = File::open(journal).ok()?;
    // A study that still runs holds an exclusive lock on its journal.
    file.try_lock_shared().ok()?;
    let mut lines = BufReader::new(file).lines();
    let begun: Begun = serde_json::from_str(&lines.next()?.ok()?).ok()?;
    lines.next()?.ok()?;
    Some(begun.command.resumed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_with_odd_words_is_quoted_for_a_shell() {
        let command = CommandLine {
            directory: "/mnt/my disk".to_owned(),
            words: ["sweep", ".", "--bs", "4k,8k", "--resume", "it's", ""]
                .map(str::to_owned)
                .to_vec(),
        };
        assert_eq!(
            command.resumed(),
            "cd '/mnt/my disk' && iosonde sweep . --bs 4k,8k 'it'\\''s' '' --resume"
        );
    }
}
