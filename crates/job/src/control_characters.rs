//! Escapes control characters in texts from outside of iosonde.
//!
//! Labels, messages of a cluster, and names of files, objects and jobs come from untrusted sources.
//! A terminal obeys control characters in them: they change the title, the clipboard or earlier
//! output. Characters that set the writing direction, or that have no width, make one name look
//! like another. Both kinds are escaped before a text leaves the program.

use std::borrow::Cow;

/// Whether a character is escaped. This holds for Unicode's control characters (C0, DEL and C1)
/// except `\n` and `\t`, and for format characters that change the direction or the lines of a text
/// or are invisible.
pub fn is_escaped(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        _ if character.is_control() => true,
        // Soft hyphen, Arabic letter mark, Mongolian vowel separator, byte order mark.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        // Zero-width characters and directional marks.
        '\u{200b}'..='\u{200f}' => true,
        // Line and paragraph separators, directional embeddings and overrides.
        '\u{2028}'..='\u{202e}' => true,
        // Word joiner, invisible operators, directional isolates.
        '\u{2060}'..='\u{206f}' => true,
        // Interlinear annotations, tags.
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Escapes the characters of [`is_escaped`] as JSON does: `\u001b`, beyond U+FFFF as two
/// surrogates. A JSON document therefore keeps its meaning.
pub fn escape_control_characters(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) || !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if !is_escaped(character) {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    debug_assert!(!escaped.contains(is_escaped));
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_and_format_characters_are_written_as_escapes() {
        for (text, escaped) in [
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("a\rb\u{0}c\u{7f}", "a\\u000db\\u0000c\\u007f"),
            ("\u{9b}31m", "\\u009b31m"),
            ("exe\u{202e}txt", "exe\\u202etxt"),
            ("\u{2066}\u{200b}\u{feff}", "\\u2066\\u200b\\ufeff"),
            ("\u{2028}\u{ad}", "\\u2028\\u00ad"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(escape_control_characters(text), escaped, "{text:?}");
        }
    }

    #[test]
    fn printable_text_is_not_changed() {
        for text in [
            "",
            "a b\n\tc",
            "Größe 4 µs ± 1 %",
            "測定 測量",
            "naïve €",
            "😀",
            "\\u001b",
        ] {
            let escaped = escape_control_characters(text);
            assert!(
                matches!(escaped, Cow::Borrowed(same) if same == text),
                "{text:?}"
            );
        }
    }

    /// Characters of every kind, many of which are escaped.
    fn characters() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            (0u32..0x100).prop_map(|code| char::from_u32(code).unwrap()),
            (0x2000u32..0x2070).prop_map(|code| char::from_u32(code).unwrap()),
        ];
        proptest::collection::vec(character, 0..40).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn escaped_text_has_no_control_characters_and_is_stable(text in characters()) {
            let escaped = escape_control_characters(&text).into_owned();
            prop_assert!(!escaped.contains(is_escaped));
            prop_assert!(matches!(escape_control_characters(&escaped), Cow::Borrowed(_)));
            let kept: String = text.chars().filter(|character| !is_escaped(*character)).collect();
            let rest = text.chars().filter(|character| is_escaped(*character));
            let added: usize = rest.map(|character| 6 * character.len_utf16()).sum();
            prop_assert_eq!(escaped.len(), kept.len() + added);
        }

        #[test]
        fn escaped_json_parses_to_the_same_text(text in characters()) {
            let json = serde_json::to_string(&[&text]).unwrap();
            let escaped = escape_control_characters(&json).into_owned();
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).unwrap(), vec![text]);
        }
    }
}
