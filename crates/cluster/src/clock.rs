//! Estimates the offset of a pod's clock from exchanges of a request and its answer.
//!
//! The pod reads its clock between request and answer. The fastest exchange gives the best
//! estimate: its error is at most half of its round-trip time, however the delay is split.

/// Offset of a pod's clock to the client's. Both count nanoseconds from origins of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Nanoseconds to add to the client's clock.
    pub(crate) ahead_ns: i128,
    /// Largest error of the offset, in nanoseconds.
    pub(crate) error_ns: u64,
}

/// One reading of the pod's clock, with the client's times of request and answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockExchange {
    /// Time of the request on the client's clock.
    pub(crate) asked_ns: u64,
    /// Reading of the pod's clock.
    pub(crate) answer_ns: u64,
    /// Arrival of the answer on the client's clock.
    pub(crate) received_ns: u64,
}

impl Offset {
    /// Estimates the offset from the fastest exchange. Returns `None` without exchanges.
    pub(crate) fn estimate(exchanges: &[ClockExchange]) -> Option<Offset> {
        let is_in_order = |exchange: &ClockExchange| exchange.asked_ns <= exchange.received_ns;
        debug_assert!(exchanges.iter().all(is_in_order), "times of one clock");
        let took =
            |exchange: &&ClockExchange| exchange.received_ns.saturating_sub(exchange.asked_ns);
        let fastest = exchanges.iter().min_by_key(took)?;
        let took_ns = took(&fastest);
        let middle_ns = i128::from(fastest.asked_ns) + i128::from(took_ns / 2);
        Some(Offset {
            ahead_ns: i128::from(fastest.answer_ns) - middle_ns,
            error_ns: took_ns.div_ceil(2),
        })
    }

    /// Converts a time of the client's clock to the pod's clock.
    pub(crate) fn there_ns(&self, here_ns: u64) -> u64 {
        u64::try_from(i128::from(here_ns) + self.ahead_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The true offset is within the error for any offset and any asymmetry of the delays.
        #[test]
        fn clock_offset_lies_within_its_error(
            shift_ns in -1_000_000_000_000i64..1_000_000_000_000,
            ways in proptest::collection::vec((0u64..50_000_000, 0u64..50_000_000), 1..20),
        ) {
            let begun_ns = 2_000_000_000_000u64;
            let exchanges: Vec<ClockExchange> = ways
                .iter()
                .enumerate()
                .map(|(index, (there_ns, back_ns))| {
                    let asked_ns = begun_ns + index as u64 * 200_000_000;
                    ClockExchange {
                        asked_ns,
                        answer_ns: (asked_ns + there_ns).checked_add_signed(shift_ns).unwrap(),
                        received_ns: asked_ns + there_ns + back_ns,
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
    fn clock_offset_without_answer_is_unknown() {
        assert_eq!(Offset::estimate(&[]), None);
    }
}
