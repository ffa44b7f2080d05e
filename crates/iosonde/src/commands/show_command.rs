//! Options of the commands on a measured result.

use crate::args::KeepArgs;
use iosonde_job::escape_control_characters;

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
    fn store_option_is_quoted_for_the_shell() {
        let mut keep = KeepArgs::default();
        assert_eq!(store_options(&keep), "");
        keep.store = Some("my results.db".into());
        assert_eq!(store_options(&keep), " --store 'my results.db'");
    }
}
