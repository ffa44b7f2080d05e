//! [`Axis`]: an option that a sweep varies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Option and the values that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Name of the option as in fio, or `target` or `job`.
    pub name: String,
    /// Values, in the order given.
    pub values: Vec<String>,
}

impl Axis {
    /// Text of one of the values, with the name of the option unless the value shows it.
    #[must_use]
    pub fn value_text(&self, value: &str) -> String {
        match (self.name.as_str(), value) {
            ("rw" | "bs" | "target" | "job", value) => value.to_owned(),
            ("numjobs", "1") => "1 job".to_owned(),
            ("numjobs", value) => format!("{value} jobs"),
            (name, value) => format!("{name}={value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_named_by_its_option() {
        let text = |name: &str, value: &str| {
            let axis = Axis {
                name: name.to_owned(),
                values: vec![value.to_owned()],
            };
            axis.value_text(value)
        };
        assert_eq!(text("bs", "4k"), "4k");
        assert_eq!(text("direct", "0"), "direct=0");
        assert_eq!(text("numjobs", "1"), "1 job");
        assert_eq!(text("numjobs", "2"), "2 jobs");
    }
}
