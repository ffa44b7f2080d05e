//! Splits Rust text into words, comments, literals and marks. `syn` drops comments and does not
//! look into macros.

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier, a keyword or a number.
    Word,
    /// A comment with its slashes, documentation included.
    Comment,
    /// A string literal with its quotes.
    Text,
    /// Anything else: one character, a character literal or a lifetime.
    Mark,
}

/// A piece of Rust text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// The line in which the token begins, from 1.
    pub(crate) line: usize,
}

/// All tokens of a text, without white space. Text that is not Rust gives some tokens and never
/// fails.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::with_capacity(text.len() / 5);
    while let Some(token) = lexer.next_token() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'a> {
    text: &'a str,
    /// Offset of the next byte.
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.line += usize::from(bytes[self.at] == b'\n');
            self.at += 1;
        }
        let rest = &self.text[self.at..];
        let (kind, length) = match *bytes.get(self.at)? {
            b'/' if rest.starts_with("//") => {
                (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len()))
            }
            b'/' if rest.starts_with("/*") => (TokenKind::Comment, block_comment_length(rest)),
            b'"' => (TokenKind::Text, string_length(rest)),
            b'\'' => (TokenKind::Mark, quote_length(rest)),
            b'r' | b'b' | b'c' => match prefixed_string_length(rest) {
                Some(length) => (TokenKind::Text, length),
                None => (TokenKind::Word, word_length(rest)),
            },
            byte if is_word_byte(byte) => (TokenKind::Word, word_length(rest)),
            _ => (
                TokenKind::Mark,
                rest.chars().next().map_or(1, char::len_utf8),
            ),
        };
        let token = Token {
            kind,
            text: &rest[..length],
            line: self.line,
        };
        self.line += token.text.bytes().filter(|byte| *byte == b'\n').count();
        self.at += length;
        Some(token)
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_length(text: &str) -> usize {
    let raw = if text.starts_with("r#") { 2 } else { 0 };
    let bytes = &text.as_bytes()[raw..];
    raw + bytes.iter().take_while(|byte| is_word_byte(**byte)).count()
}

/// Length of `/* ... */`, which may be nested.
fn block_comment_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Length of `"..."` with its escapes.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Length of a string that begins with `r`, `b`, `br`, `c` or `cr`; `None` if it is another word.
fn prefixed_string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let letters = bytes
        .iter()
        .take_while(|byte| matches!(byte, b'r' | b'b' | b'c'))
        .count();
    let is_raw = bytes[..letters].contains(&b'r');
    let marks = bytes[letters..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    if letters > 2 || bytes.get(letters + marks) != Some(&b'"') || (marks > 0 && !is_raw) {
        return None;
    }
    if !is_raw {
        return Some(letters + string_length(&text[letters..]));
    }
    let end = format!("\"{}", "#".repeat(marks));
    let start = letters + marks + 1;
    let length = text[start..]
        .find(&end)
        .map_or(text.len(), |found| start + found + end.len());
    Some(length)
}

/// Length of a character literal, or of a lifetime.
fn quote_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            let after = chars.nth(1).map_or(text.len(), |(at, _)| at);
            text[after..]
                .find('\'')
                .map_or(text.len(), |found| after + found + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => {
                1 + text.as_bytes()[1..]
                    .iter()
                    .take_while(|byte| is_word_byte(**byte))
                    .count()
            }
        },
        None => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, kind: TokenKind) -> Vec<&str> {
        let found = tokens(text).into_iter().filter(|token| token.kind == kind);
        found.map(|token| token.text).collect()
    }

    #[test]
    fn comments_end_with_their_line_or_their_nesting() {
        let text = "a // one \"no string\"\n/* two /* in */ out */ b /// three";
        let comments = [
            "// one \"no string\"",
            "/* two /* in */ out */",
            "/// three",
        ];
        assert_eq!(texts(text, TokenKind::Comment), comments);
        assert_eq!(texts(text, TokenKind::Word), ["a", "b"]);
    }

    #[test]
    fn strings_end_at_their_own_quote() {
        let text = r####"f("a \" // b", r#"c " d"#, b"e", br"\", c"x")"####;
        let strings = [
            r#""a \" // b""#,
            r##"r#"c " d"#"##,
            "b\"e\"",
            "br\"\\\"",
            "c\"x\"",
        ];
        assert_eq!(texts(text, TokenKind::Text), strings);
        assert_eq!(texts(text, TokenKind::Word), ["f"]);
    }

    #[test]
    fn quotes_of_characters_and_lifetimes_begin_no_string() {
        let text = "fn f<'a>(x: &'a str) { g('\"', '\\'', '\\u{41}', b'x', 'y') } // z";
        assert_eq!(texts(text, TokenKind::Text), Vec::<&str>::new());
        assert_eq!(texts(text, TokenKind::Comment), ["// z"]);
        assert_eq!(texts("r#type bar", TokenKind::Word), ["r#type", "bar"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let lines: Vec<_> = tokens("a\n\"x\ny\" b\n/*\n*/ c")
            .iter()
            .map(|t| t.line)
            .collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }
}
