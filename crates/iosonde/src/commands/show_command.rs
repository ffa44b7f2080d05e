//! The command that shows a measured result as a whole.

use crate::args::KeepArgs;
use iosonde_job::escape_control_characters;

/// Returns the command for a stored result with this id, or the option for one that is not stored.
pub(super) fn details(id: Option<&str>, keep: &KeepArgs) -> String {
    match id {
        Some(id) => format!("iosonde show {id}{}", store_options(keep)),
        None => "--details".to_owned(),
    }
}

/// Returns the options of the history that commands on the result need, e.g. ` --store FILE`.
pub(super) fn store_options(keep: &KeepArgs) -> String {
    let store = keep.store.as_ref();
    let store = store.map(|file| format!(" --store {}", shell_word(&file.to_string_lossy())));
    store.unwrap_or_default()
}

/// Quotes a word of a command line for the shell, if it must be quoted.
fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!(
            "'{}'",
            escape_control_characters(word).replace('\'', "'\\''")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_with_special_characters_is_quoted() {
        assert_eq!(shell_word("/data/history.db"), "/data/history.db");
        assert_eq!(shell_word("my results.db"), "'my results.db'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn stored_result_is_shown_without_another_measurement() {
        let mut keep = KeepArgs::default();
        assert_eq!(details(Some("8ee054"), &keep), "iosonde show 8ee054");
        assert_eq!(details(None, &keep), "--details");
        keep.store = Some("my results.db".into());
        assert_eq!(
            details(Some("8ee054"), &keep),
            "iosonde show 8ee054 --store 'my results.db'"
        );
    }
}
