//! Options of the commands on a measured result.

use crate::args::KeepArgs;
use iosonde_job::{escape_control_characters, quote_shell_word};
use std::path::Path;

/// Returns the options of the history that commands on the result need, e.g. ` --store FILE`.
pub(super) fn store_options(keep: &KeepArgs) -> String {
    store_option(keep.store.as_deref())
}

/// Returns the option that names the file of the history. Empty for the default file.
pub(super) fn store_option(file: Option<&Path>) -> String {
    let Some(file) = file else {
        return String::new();
    };
    let file = file.to_string_lossy();
    let word = quote_shell_word(&escape_control_characters(&file));
    format!(" --store {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_option_is_quoted_for_the_shell() {
        let mut keep = KeepArgs::default();
        assert_eq!(store_options(&keep), "");
        keep.store = Some("my results.db".into());
        assert_eq!(store_options(&keep), " --store 'my results.db'");
        keep.store = Some("a\u{1b}b".into());
        assert_eq!(store_options(&keep), r" --store 'a\u001bb'");
    }
}
