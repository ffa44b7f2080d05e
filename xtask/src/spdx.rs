//! Licence expressions of the Software Package Data Exchange (SPDX), such as
//! `(MIT OR Apache-2.0) AND Unicode-3.0`.

use anyhow::{Result, bail, ensure};

/// Deepest nesting of parentheses that is read.
const NESTING_MAX: usize = 16;

/// A parsed expression.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum LicenceExpression {
    /// A licence, with its exception if there is one: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    /// All of them apply.
    And(Vec<LicenceExpression>),
    /// The user chooses one.
    Or(Vec<LicenceExpression>),
}

/// Returns the expression with the slash of old manifests replaced: `MIT/Apache-2.0`.
pub(crate) fn normalised(expression: &str) -> String {
    let parts: Vec<&str> = expression.split('/').map(str::trim).collect();
    parts.join(" OR ")
}

impl LicenceExpression {
    /// Parses an expression. AND binds more tightly than OR.
    ///
    /// # Errors
    /// If the expression is empty or its syntax is wrong.
    pub(crate) fn parse(expression: &str) -> Result<Self> {
        let spaced = normalised(expression)
            .replace('(', " ( ")
            .replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut parser = SpdxParser {
            words: &words,
            depth: 0,
        };
        let parsed = parser.alternatives()?;
        ensure!(
            parser.words.is_empty(),
            "unexpected `{}` in the licence `{expression}`",
            parser.words[0]
        );
        Ok(parsed)
    }

    /// Whether a choice exists in which each licence is allowed.
    pub(crate) fn is_satisfied(&self, is_allowed: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Licence(name) => is_allowed(name),
            Self::And(parts) => parts.iter().all(|part| part.is_satisfied(is_allowed)),
            Self::Or(parts) => parts.iter().any(|part| part.is_satisfied(is_allowed)),
        }
    }
}

struct SpdxParser<'a> {
    /// Words that were not read yet.
    words: &'a [&'a str],
    /// Open parentheses.
    depth: usize,
}

impl<'a> SpdxParser<'a> {
    fn alternatives(&mut self) -> Result<LicenceExpression> {
        let mut parts = vec![self.conjunction()?];
        while self.skip("OR") {
            parts.push(self.conjunction()?);
        }
        Ok(single_or(parts, LicenceExpression::Or))
    }

    fn conjunction(&mut self) -> Result<LicenceExpression> {
        let mut parts = vec![self.licence()?];
        while self.skip("AND") {
            parts.push(self.licence()?);
        }
        Ok(single_or(parts, LicenceExpression::And))
    }

    fn licence(&mut self) -> Result<LicenceExpression> {
        if self.skip("(") {
            self.depth += 1;
            ensure!(
                self.depth <= NESTING_MAX,
                "a licence has too many parentheses"
            );
            let inner = self.alternatives()?;
            ensure!(self.skip(")"), "a licence has an open parenthesis");
            self.depth -= 1;
            return Ok(inner);
        }
        let name = self.identifier()?;
        if self.skip("WITH") {
            let exception = self.identifier()?;
            return Ok(LicenceExpression::Licence(format!(
                "{name} WITH {exception}"
            )));
        }
        Ok(LicenceExpression::Licence(name.to_owned()))
    }

    fn identifier(&mut self) -> Result<&'a str> {
        match self.words {
            [] => bail!("a licence ends too early"),
            [word @ ("AND" | "OR" | "WITH" | "(" | ")"), ..] => {
                bail!("`{word}` stands in the place of a licence")
            }
            [word, rest @ ..] => {
                self.words = rest;
                Ok(word)
            }
        }
    }

    /// Reads `word` if it comes next.
    fn skip(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }
}

fn single_or(
    mut parts: Vec<LicenceExpression>,
    join: fn(Vec<LicenceExpression>) -> LicenceExpression,
) -> LicenceExpression {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_satisfied(expression: &str, allowed: &[&str]) -> bool {
        let parsed = LicenceExpression::parse(expression).unwrap();
        parsed.is_satisfied(&|name| allowed.contains(&name))
    }

    #[test]
    fn choice_needs_one_allowed_licence() {
        assert!(is_satisfied("Unlicense OR MIT", &["MIT"]));
        assert!(!is_satisfied("Unlicense OR MIT", &["Apache-2.0"]));
    }

    #[test]
    fn conjunction_needs_all_licences() {
        let expression = "(MIT OR Apache-2.0) AND Unicode-3.0";
        assert!(is_satisfied(expression, &["MIT", "Unicode-3.0"]));
        assert!(!is_satisfied(expression, &["MIT"]));
        // AND binds more tightly: MIT alone is a choice.
        assert!(is_satisfied("MIT OR ISC AND Zlib", &["MIT"]));
        assert!(!is_satisfied("MIT OR ISC AND Zlib", &["ISC"]));
    }

    #[test]
    fn exception_makes_another_licence() {
        let expression = "Apache-2.0 WITH LLVM-exception";
        assert!(!is_satisfied(expression, &["Apache-2.0"]));
        assert!(is_satisfied(expression, &[expression]));
    }

    #[test]
    fn slash_of_old_manifests_is_a_choice() {
        assert_eq!(normalised("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(normalised("Apache-2.0 / MIT"), "Apache-2.0 OR MIT");
        assert_eq!(normalised("MIT OR Apache-2.0"), "MIT OR Apache-2.0");
    }

    #[test]
    fn broken_expression_is_refused() {
        for expression in [
            "", "MIT OR", "MIT MIT", "(MIT", "MIT)", "AND MIT", "MIT WITH",
        ] {
            assert!(
                LicenceExpression::parse(expression).is_err(),
                "{expression}"
            );
        }
        assert!(LicenceExpression::parse(&"(".repeat(1_000)).is_err());
    }
}
