//! Words of command lines, quoted for a POSIX shell.

/// Quotes a word of a command line unless a shell reads it unchanged.
pub fn quote_shell_word(word: &str) -> String {
    match is_plain(word) {
        true => word.to_owned(),
        false => single_quoted(word),
    }
}

/// Puts a word into single quotes, in which a shell expands nothing.
pub fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether a shell reads the word unchanged. A shell replaces a tilde at the start of a word or of
/// an assigned value by a home directory.
fn is_plain(word: &str) -> bool {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,%+@^~".contains(letter);
    !word.is_empty()
        && word.chars().all(is_safe)
        && !word.starts_with('~')
        && !word.contains("=~")
        && !word.contains(":~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_with_special_characters_is_quoted() {
        for plain in ["/data/history.db", "--bs=4k,8k", "latest~1", "50%", "a:b@c"] {
            assert_eq!(quote_shell_word(plain), plain);
        }
        for (word, quoted) in [
            ("", "''"),
            ("my results.db", "'my results.db'"),
            ("it's", r"'it'\''s'"),
            ("~root", "'~root'"),
            ("disk=~/x", "'disk=~/x'"),
            ("a:~b", "'a:~b'"),
            ("$HOME", "'$HOME'"),
            ("a*", "'a*'"),
            ("a{1,2}", "'a{1,2}'"),
            ("stop!", "'stop!'"),
            ("a;b", "'a;b'"),
            (r"a\b", r"'a\b'"),
            ("a\nb", "'a\nb'"),
            ("gr\u{f6}\u{df}e", "'gr\u{f6}\u{df}e'"),
        ] {
            assert_eq!(quote_shell_word(word), quoted);
        }
    }

    #[test]
    fn single_quotes_enclose_plain_words_too() {
        assert_eq!(single_quoted("/tmp"), "'/tmp'");
        assert_eq!(single_quoted("/it's"), r"'/it'\''s'");
    }
}
