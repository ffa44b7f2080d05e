//! Evaluates arithmetic expressions: `+ - * / % ^` and parentheses.

/// Limit on nesting, so that no input exhausts the stack.
const MAX_DEPTH: usize = 64;

/// Evaluates an expression; `None` if the text is not an expression. `number` reads a number with
/// its suffix.
pub fn evaluate(text: &str, number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let mut parser = ExpressionParser {
        rest: text,
        number: &number,
        depth: 0,
    };
    let value = parser.sum()?;
    (parser.rest.trim().is_empty() && value.is_finite()).then_some(value)
}

struct ExpressionParser<'a> {
    rest: &'a str,
    number: &'a dyn Fn(&str) -> Option<f64>,
    depth: usize,
}

impl ExpressionParser<'_> {
    fn eat(&mut self, operators: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        if !operators.contains(&first) {
            return None;
        }
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    fn sum(&mut self) -> Option<f64> {
        let mut left = self.product()?;
        while let Some(operator) = self.eat(&['+', '-']) {
            let right = self.product()?;
            left = if operator == '+' {
                left + right
            } else {
                left - right
            };
        }
        Some(left)
    }

    fn product(&mut self) -> Option<f64> {
        let mut left = self.power()?;
        while let Some(operator) = self.eat(&['*', '/', '%']) {
            let right = self.power()?;
            left = match operator {
                '*' => left * right,
                '/' => left / right,
                _ => left % right,
            };
        }
        Some(left)
    }

    fn power(&mut self) -> Option<f64> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let base = self.atom()?;
        let value = match self.eat(&['^']) {
            Some(_) => base.powf(self.power()?),
            None => base,
        };
        self.depth -= 1;
        Some(value)
    }

    fn atom(&mut self) -> Option<f64> {
        if self.eat(&['-']).is_some() {
            return self.power().map(|value| -value);
        }
        if self.eat(&['(']).is_some() {
            let value = self.sum()?;
            return self.eat(&[')']).map(|_| value);
        }
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        (self.number)(digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: &str) -> Option<f64> {
        evaluate(text, |digits| digits.parse().ok())
    }

    #[test]
    fn operators_have_the_usual_precedence() {
        assert_eq!(plain("2+3*4"), Some(14.0));
        assert_eq!(plain("(2+3)*4"), Some(20.0));
        assert_eq!(plain("2^3^2"), Some(512.0));
        assert_eq!(plain("17 % 5 - -1"), Some(3.0));
        assert_eq!(plain("1/0"), None);
        assert_eq!(plain("2+"), None);
        assert_eq!(plain("(2"), None);
        assert_eq!(plain(""), None);
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert_eq!(plain(&"(".repeat(100_000)), None);
        assert_eq!(plain(&"-".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn arbitrary_expressions_never_panic(text in "[-+*/%^().0-9a-z ]{0,40}") {
            plain(&text);
        }
    }
}
