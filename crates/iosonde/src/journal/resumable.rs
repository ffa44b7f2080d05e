//! Stopped studies, as the commands that resume them.

use super::journal_key::KEY_VERSION;
use iosonde_job::{quote_shell_word, read_json};
use iosonde_machine::consent::ConsentedTarget;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::SystemTime;

/// The first line of a journal.
#[derive(Serialize, Deserialize)]
pub(super) struct JournalHeader {
    /// The command that began the journal.
    pub(super) command: ResumableCommand,
    /// Consent to overwrite.
    pub(super) consent: Vec<ConsentedTarget>,
    /// Version of the key whose digest names the journal; 0 in journals that do not record it.
    #[serde(default)]
    pub(super) key_version: u32,
}

/// A command and its working directory.
#[derive(Serialize, Deserialize)]
pub(super) struct ResumableCommand {
    directory: String,
    words: Vec<String>,
}

impl ResumableCommand {
    /// The command line of this process.
    pub(super) fn of_this_process() -> ResumableCommand {
        let directory = std::env::current_dir().unwrap_or_default();
        ResumableCommand {
            directory: directory.to_string_lossy().into_owned(),
            words: std::env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        }
    }

    /// Shell command that resumes the study from any directory. `--resume` is before `--`, after
    /// which all words are targets.
    fn resumed(&self) -> String {
        let separator = self.words.iter().position(|word| word == "--");
        let (options, targets) = self.words.split_at(separator.unwrap_or(self.words.len()));
        let options = options.iter().filter(|word| *word != "--resume");
        let words = ["iosonde".to_owned()]
            .into_iter()
            .chain(options.map(|word| quote_shell_word(word)))
            .chain(["--resume".to_owned()])
            .chain(targets.iter().map(|word| quote_shell_word(word)));
        let words: Vec<String> = words.collect();
        let directory = quote_shell_word(&self.directory);
        format!("cd {directory} && {}", words.join(" "))
    }
}

/// Returns the latest stopped study of a directory with the command that resumes it, and the
/// command that prints the others.
pub(super) fn latest_stopped(directory: &Path) -> Option<String> {
    let commands = resumable(directory);
    let latest = commands.first()?;
    Some(match commands.len() {
        1 => format!("the stopped one:\n  {latest}"),
        count => {
            let files = quote_shell_word(&directory.to_string_lossy());
            format!(
                "the latest of {count} stopped ones, which `head -qn 1 {files}/*.jsonl` \
                 prints:\n  {latest}"
            )
        }
    })
}

/// Commands that resume the studies in a directory: their journals have a result, no writer, and
/// keys of this version, the latest first. The key of another version has another digest, so
/// `--resume` would not find its journal.
fn resumable(directory: &Path) -> Vec<String> {
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
    commands
}

/// The command that resumes a journal's study.
fn stopped(journal: &Path) -> Option<String> {
    let file = File::open(journal).ok()?;
    // A running study holds an exclusive lock on its journal.
    file.try_lock_shared().ok()?;
    let mut lines = BufReader::new(file).lines();
    let begun: JournalHeader = read_json(lines.next()?.ok()?).ok()?;
    lines.next()?.ok()?;
    (begun.key_version == KEY_VERSION).then(|| begun.command.resumed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn resume_command_is_quoted_for_shell() {
        let command = ResumableCommand {
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

    #[test]
    fn resume_option_is_before_the_separator_of_targets() {
        let command = |words: &[&str]| ResumableCommand {
            directory: "/data".to_owned(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert_eq!(
            command(&["sweep", "--resume", "--bs", "4k", "--", "-my disk"]).resumed(),
            "cd /data && iosonde sweep --bs 4k --resume -- '-my disk'"
        );
        // After the separator, the word is the name of a target.
        assert_eq!(
            command(&["probe", "--", "--resume"]).resumed(),
            "cd /data && iosonde probe --resume -- --resume"
        );
    }

    /// Creates a directory in which the test that it is named after writes journals.
    fn journals(name: &str) -> PathBuf {
        let name = format!("iosonde-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn sweep_of(target: &str) -> ResumableCommand {
        ResumableCommand {
            directory: "/".to_owned(),
            words: vec!["sweep".to_owned(), target.to_owned()],
        }
    }

    /// Writes a journal with one result, whose header is changed before.
    fn write(directory: &Path, target: &str, change: &dyn Fn(&mut serde_json::Value)) {
        let mut header = serde_json::to_value(JournalHeader {
            command: sweep_of(target),
            consent: Vec::new(),
            key_version: KEY_VERSION,
        })
        .unwrap();
        change(&mut header);
        let path = directory.join(format!("{target}.jsonl"));
        std::fs::write(path, format!("{header}\n{{}}\n")).unwrap();
    }

    #[test]
    fn journal_of_other_key_version_is_not_listed() {
        let directory = journals("listed");
        write(&directory, "current", &|_| {});
        write(&directory, "other", &|header| {
            header["key_version"] = (KEY_VERSION + 1).into();
        });
        write(&directory, "without-version", &|header| {
            header.as_object_mut().unwrap().remove("key_version");
        });
        let listed = resumable(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(listed, [sweep_of("current").resumed()]);
    }

    #[test]
    fn latest_of_stopped_studies_has_its_command() {
        let directory = journals("latest-stopped");
        assert_eq!(latest_stopped(&directory), None);
        let mut texts = Vec::new();
        for (target, age_s) in [("a", 200), ("b", 0), ("c", 100)] {
            write(&directory, target, &|_| {});
            let file = directory.join(format!("{target}.jsonl"));
            let file = File::options().append(true).open(file).unwrap();
            let written_at = SystemTime::now() - Duration::from_secs(age_s);
            file.set_modified(written_at).unwrap();
            texts.push(latest_stopped(&directory).unwrap());
        }
        std::fs::remove_dir_all(&directory).unwrap();
        let command = |target| sweep_of(target).resumed();
        assert_eq!(texts[0], format!("the stopped one:\n  {}", command("a")));
        let expected = format!(
            "the latest of 3 stopped ones, which `head -qn 1 {}/*.jsonl` prints:\n  {}",
            directory.display(),
            command("b")
        );
        assert_eq!(texts[2], expected);
    }
}
