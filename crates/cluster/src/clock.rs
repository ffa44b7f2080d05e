//! What the clock of a pod reads, told from what it answered and how long that took.
//!
//! The answer was given between the question and its arrival here. Of several exchanges the fastest says most: half of its
//! time is how far off the estimate can be, whatever the way there and the way back took each.

/// How the clock of a pod stands to that of the client, both in nanoseconds since some moment of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// What must be added to the client's clock.
    pub ahead_ns: i128,
    /// How far off that may be.
    pub error_ns: u64,
}

/// A question for the pod's clock, by the clock of the client, and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When it was asked.
    pub asked_ns: u64,
    /// What the pod's clock read.
    pub answer_ns: u64,
    /// When the answer was here.
    pub heard_ns: u64,
}

impl Offset {
    /// From some exchanges; `None` without any.
    pub fn estimate(exchanges: &[Exchange]) -> Option<Offset> {
        let took = |exchange: &&Exchange| exchange.heard_ns.saturating_sub(exchange.asked_ns);
        let fastest = exchanges.iter().min_by_key(took)?;
        let took_ns = took(&fastest);
        let middle_ns = i128::from(fastest.asked_ns) + i128::from(took_ns / 2);
        Some(Offset {
            ahead_ns: i128::from(fastest.answer_ns) - middle_ns,
            error_ns: took_ns.div_ceil(2),
        })
    }

    /// A moment of the client, on the pod's clock.
    pub fn there_ns(&self, here_ns: u64) -> u64 {
        u64::try_from(i128::from(here_ns) + self.ahead_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the clock of the pod reads, and however uneven the ways are, the truth is within the error.
        #[test]
        fn the_truth_is_within_the_error(
            shift_ns in -1_000_000_000_000i64..1_000_000_000_000,
            ways in proptest::collection::vec((0u64..50_000_000, 0u64..50_000_000), 1..20),
        ) {
            let begun_ns = 2_000_000_000_000u64;
            let exchanges: Vec<Exchange> = ways
                .iter()
                .enumerate()
                .map(|(index, (there_ns, back_ns))| {
                    let asked_ns = begun_ns + index as u64 * 200_000_000;
                    Exchange {
                        asked_ns,
                        answer_ns: (asked_ns + there_ns).checked_add_signed(shift_ns).unwrap(),
                        heard_ns: asked_ns + there_ns + back_ns,
                    }
                })
                .collect();
            let offset = Offset::estimate(&exchanges).unwrap();
            let off_ns = (offset.ahead_ns - i128::from(shift_ns)).unsigned_abs();
            prop_assert!(off_ns <= u128::from(offset.error_ns) + 1);
            let fastest = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(offset.error_ns, fastest.div_ceil(2));
            let moment = begun_ns + 7;
            let there = i128::from(offset.there_ns(moment)) - i128::from(moment);
            prop_assert_eq!(there, offset.ahead_ns);
        }
    }

    #[test]
    fn nothing_is_known_without_an_answer() {
        assert_eq!(Offset::estimate(&[]), None);
    }
}
