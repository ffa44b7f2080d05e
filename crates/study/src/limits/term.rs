//! How a published figure follows from a volume: a number, or a sum of rates within bounds.

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What a figure may depend on. Amounts are those of one volume, or of all together where the product pools them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Given {
    /// Size in GiB.
    pub(super) size_gib: f64,
    /// Number of volumes.
    pub(super) disks: f64,
    /// Provisioned operations per second.
    pub(super) iops: f64,
    /// Provisioned bandwidth in bytes per second.
    pub(super) bytes_per_s: f64,
}

/// The figure, and what decided it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    /// What is promised at least.
    pub(super) value: f64,
    /// What the vendor gives as the upper end, where it publishes a range; otherwise the same.
    pub(super) up_to: f64,
    /// What decided it.
    pub(super) decided_by: Decision,
}

/// What decided a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is a plain number.
    Fixed,
    /// The size.
    Size,
    /// The number of volumes.
    Disks,
    /// The provisioned IOPS.
    Iops,
    /// The provisioned bandwidth.
    Bandwidth,
    /// The least that the vendor gives.
    Minimum,
    /// The most that the vendor gives.
    Maximum,
}

/// One or more pieces, of which the greatest counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term(Vec<Piece>);

/// `base` and rates, kept within `min` and `max`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Piece {
    base: f64,
    per_gib: f64,
    per_disk: f64,
    per_iops: f64,
    per_mib_per_s: f64,
    per_mb_per_s: f64,
    min: Option<f64>,
    max: Option<Most>,
}

/// An upper bound; a pair where the page gives only the lowest and the highest of several.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
enum Most {
    One(f64),
    Between([f64; 2]),
}

impl Term {
    /// The figure, in the unit of the term.
    pub(super) fn value(&self, given: &Given) -> Value {
        let mut greatest = self.0[0].value(given);
        for piece in &self.0[1..] {
            let value = piece.value(given);
            if value.value > greatest.value {
                greatest = value;
            }
        }
        greatest
    }
}

impl Piece {
    fn value(&self, given: &Given) -> Value {
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

    fn bounded(&self, sum: f64, decided_by: Decision) -> Value {
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
        Value {
            value: clamp(low),
            up_to: clamp(high),
            decided_by,
        }
    }

    fn problem(&self) -> Option<String> {
        let most = match self.max {
            Some(Most::Between([low, high])) if low > high => {
                return Some(format!("the pair [{low}, {high}] is not in order"));
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
            return Some("limits and rates are not negative".to_owned());
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
        formatter.write_str("a number, a table like { base = 240, per_gib = 0.48, max = 1200 }, or a list of such tables, of which the greatest counts")
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Term, E> {
        checked(vec![Piece {
            base: value,
            ..Piece::default()
        }])
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Term, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Term, E> {
        self.visit_f64(value as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Term, A::Error> {
        checked(Piece::deserialize(MapAccessDeserializer::new(map)).map(|piece| vec![piece])?)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Term, A::Error> {
        checked(Vec::deserialize(SeqAccessDeserializer::new(seq))?)
    }
}

/// A term that makes sense; here, so that the error is where the term is.
fn checked<E: serde::de::Error>(pieces: Vec<Piece>) -> Result<Term, E> {
    if pieces.is_empty() {
        return Err(E::custom("the list is empty"));
    }
    match pieces.iter().find_map(Piece::problem) {
        Some(problem) => Err(E::custom(problem)),
        None => Ok(Term(pieces)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> Term {
        #[derive(Deserialize)]
        struct File {
            term: Term,
        }
        toml::from_str::<File>(&format!("term = {text}"))
            .unwrap()
            .term
    }

    fn of_size(text: &str, size_gib: f64) -> (f64, f64, Decision) {
        let value = term(text).value(&Given {
            size_gib,
            ..Given::default()
        });
        (value.value, value.up_to, value.decided_by)
    }

    #[test]
    fn a_rate_keeps_within_its_bounds() {
        let gp2 = "{ per_gib = 3, min = 100, max = 16000 }";
        assert_eq!(of_size(gp2, 10.0), (100.0, 100.0, Decision::Minimum));
        assert_eq!(of_size(gp2, 100.0), (300.0, 300.0, Decision::Size));
        assert_eq!(of_size(gp2, 1e4), (16e3, 16e3, Decision::Maximum));
        assert_eq!(of_size("7", 1.0), (7.0, 7.0, Decision::Fixed));
    }

    #[test]
    fn a_pair_of_maxima_makes_a_range() {
        let term = "{ per_gib = 30, max = [15000, 60000] }";
        assert_eq!(of_size(term, 1000.0), (15e3, 30e3, Decision::Maximum));
        assert_eq!(of_size(term, 100.0), (3e3, 3e3, Decision::Size));
    }

    #[test]
    fn the_greatest_of_a_list_counts() {
        let io1 = term("[{ per_iops = 0.25, max = 500 }, { per_iops = 0.015625, max = 1000 }]");
        let at = |iops: f64| {
            io1.value(&Given {
                iops,
                ..Given::default()
            })
            .value
        };
        assert_eq!(at(1000.0), 250.0);
        assert_eq!(at(2000.0), 500.0);
        assert_eq!(at(32_000.0), 500.0);
        assert_eq!(at(64_000.0), 1000.0);
    }

    #[test]
    fn nonsense_is_found() {
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
            "limits and rates are not negative"
        );
        assert_eq!(message("t = -1"), "limits and rates are not negative");
        assert_eq!(
            message("t = { max = [5, 4] }"),
            "the pair [5, 4] is not in order"
        );
        assert_eq!(message("t = []"), "the list is empty");
    }
}
