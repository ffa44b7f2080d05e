//! Formula of a published figure: a number, or a sum of rates with a minimum and a maximum.

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Amounts on which a figure may depend: of one volume, or of all together for a pooled product.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct TermInputs {
    /// Size in GiB.
    pub(super) size_gib: f64,
    /// Number of volumes.
    pub(super) disks: f64,
    /// Provisioned operations per second.
    pub(super) iops: f64,
    /// Provisioned bandwidth in bytes per second.
    pub(super) bytes_per_s: f64,
}

/// Value of a term, and the part that determined it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TermValue {
    /// Value, or the lower end of a published range.
    pub(super) value: f64,
    /// Upper end of a published range. Without a range, `value`.
    pub(super) up_to: f64,
    /// The part of the term that determined the value.
    pub(super) decided_by: Decision,
}

/// The part of a term that determined its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// A fixed number.
    Fixed,
    /// Size of the volumes.
    Size,
    /// Number of volumes.
    Disks,
    /// Provisioned IOPS.
    Iops,
    /// Provisioned bandwidth.
    Bandwidth,
    /// Minimum.
    Minimum,
    /// Maximum.
    Maximum,
}

/// One or more formulas, of which the greatest value counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term(Vec<Formula>);

/// `base` plus rates, limited to `min` and `max`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Formula {
    base: f64,
    per_gib: f64,
    per_disk: f64,
    per_iops: f64,
    per_mib_per_s: f64,
    per_mb_per_s: f64,
    min: Option<f64>,
    max: Option<Most>,
}

/// Maximum, or the lowest and highest of several maxima if the page gives only these.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
enum Most {
    One(f64),
    Between([f64; 2]),
}

impl Term {
    /// Returns the value, in the unit of the term.
    pub(super) fn value(&self, given: &TermInputs) -> TermValue {
        let mut greatest = self.0[0].value(given);
        for formula in &self.0[1..] {
            let value = formula.value(given);
            if value.value > greatest.value {
                greatest = value;
            }
        }
        greatest
    }
}

impl Formula {
    fn value(&self, given: &TermInputs) -> TermValue {
        let parts = [
            (self.per_gib * given.size_gib, Decision::Size),
            (self.per_disk * given.disks, Decision::Disks),
            (self.per_iops * given.iops, Decision::Iops),
            (
                self.per_mib_per_s * given.bytes_per_s / f64::from(1 << 20),
                Decision::Bandwidth,
            ),
            (
                self.per_mb_per_s * given.bytes_per_s / 1e6,
                Decision::Bandwidth,
            ),
        ];
        let sum = self.base + parts.iter().map(|(part, _)| part).sum::<f64>();
        let decided_by = parts
            .iter()
            .find(|(part, _)| *part > 0.0)
            .map_or(Decision::Fixed, |(_, decision)| *decision);
        self.bounded(sum, decided_by)
    }

    fn bounded(&self, sum: f64, decided_by: Decision) -> TermValue {
        let (low, high) = match self.max {
            None => (f64::INFINITY, f64::INFINITY),
            Some(Most::One(most)) => (most, most),
            Some(Most::Between([low, high])) => (low, high),
        };
        let least = self.min.unwrap_or(f64::NEG_INFINITY);
        let clamp = |most: f64| sum.max(least).min(most);
        let decided_by = if sum > low {
            Decision::Maximum
        } else if sum < least {
            Decision::Minimum
        } else {
            decided_by
        };
        TermValue {
            value: clamp(low),
            up_to: clamp(high),
            decided_by,
        }
    }

    fn problem(&self) -> Option<String> {
        let most = match self.max {
            Some(Most::Between([low, high])) if low > high => {
                return Some(format!("the range [{low}, {high}] is not ascending"));
            }
            Some(Most::One(most) | Most::Between([most, _])) => most,
            None => f64::INFINITY,
        };
        let least = self.min.unwrap_or(0.0);
        let rates = [
            self.base,
            self.per_gib,
            self.per_disk,
            self.per_iops,
            self.per_mib_per_s,
            self.per_mb_per_s,
            least,
            most,
        ];
        if rates.iter().any(|rate| rate.is_nan() || *rate < 0.0) {
            return Some("limits and rates must not be negative".to_owned());
        }
        if least > most {
            return Some(format!("min {least} is more than max {most}"));
        }
        None
    }
}

impl<'de> Deserialize<'de> for Term {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TermVisitor)
    }
}

struct TermVisitor;

impl<'de> Visitor<'de> for TermVisitor {
    type Value = Term;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "a number, a table like { base = 240, per_gib = 0.48, max = 1200 }, or a list of such \
             tables, whose maximum applies",
        )
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Term, E> {
        checked(vec![Formula {
            base: value,
            ..Formula::default()
        }])
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Term, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Term, E> {
        self.visit_f64(value as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Term, A::Error> {
        checked(Formula::deserialize(MapAccessDeserializer::new(map)).map(|formula| vec![formula])?)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Term, A::Error> {
        checked(Vec::deserialize(SeqAccessDeserializer::new(seq))?)
    }
}

/// Returns a valid term. Checked during parsing, so that an error has the term's position.
fn checked<E: serde::de::Error>(formulas: Vec<Formula>) -> Result<Term, E> {
    if formulas.is_empty() {
        return Err(E::custom("the list is empty"));
    }
    match formulas.iter().find_map(Formula::problem) {
        Some(problem) => Err(E::custom(problem)),
        None => Ok(Term(formulas)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> Term {
        #[derive(Deserialize)]
        struct TermFile {
            term: Term,
        }
        toml::from_str::<TermFile>(&format!("term = {text}"))
            .unwrap()
            .term
    }

    fn value_at_size(text: &str, size_gib: f64) -> (f64, f64, Decision) {
        let value = term(text).value(&TermInputs {
            size_gib,
            ..TermInputs::default()
        });
        (value.value, value.up_to, value.decided_by)
    }

    #[test]
    fn rate_is_limited_to_min_and_max() {
        let gp2 = "{ per_gib = 3, min = 100, max = 16000 }";
        assert_eq!(value_at_size(gp2, 10.0), (100.0, 100.0, Decision::Minimum));
        assert_eq!(value_at_size(gp2, 100.0), (300.0, 300.0, Decision::Size));
        assert_eq!(value_at_size(gp2, 1e4), (16e3, 16e3, Decision::Maximum));
        assert_eq!(value_at_size("7", 1.0), (7.0, 7.0, Decision::Fixed));
    }

    #[test]
    fn pair_of_maxima_gives_range() {
        let term = "{ per_gib = 30, max = [15000, 60000] }";
        assert_eq!(value_at_size(term, 1000.0), (15e3, 30e3, Decision::Maximum));
        assert_eq!(value_at_size(term, 100.0), (3e3, 3e3, Decision::Size));
    }

    #[test]
    fn list_value_is_greatest_of_formulas() {
        let io1 = term("[{ per_iops = 0.25, max = 500 }, { per_iops = 0.015625, max = 1000 }]");
        let at = |iops: f64| {
            io1.value(&TermInputs {
                iops,
                ..TermInputs::default()
            })
            .value
        };
        assert_eq!(at(1000.0), 250.0);
        assert_eq!(at(2000.0), 500.0);
        assert_eq!(at(32_000.0), 500.0);
        assert_eq!(at(64_000.0), 1000.0);
    }

    #[test]
    fn invalid_terms_are_refused() {
        let message = |text: &str| {
            let read: Result<std::collections::BTreeMap<String, Term>, _> = toml::from_str(text);
            read.map_err(|error| error.message().to_owned())
                .unwrap_err()
        };
        assert_eq!(
            message("t = { min = 5, max = 4 }"),
            "min 5 is more than max 4"
        );
        assert_eq!(
            message("t = { per_gib = -1 }"),
            "limits and rates must not be negative"
        );
        assert_eq!(message("t = -1"), "limits and rates must not be negative");
        assert_eq!(
            message("t = { max = [5, 4] }"),
            "the range [5, 4] is not ascending"
        );
        assert_eq!(message("t = []"), "the list is empty");
    }
}
