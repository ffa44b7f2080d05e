//! Sends a result's time series in parts before [`AgentMessage::Done`]: no message grows with the
//! run.

use super::AgentMessage;
use crate::interval::{Interval, Intervals};
use crate::machine::MachineSlice;
use crate::run::RunResult;
use crate::run_error::RunError;
use crate::spill_list::SpillList;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Note in a result whose intervals could not be read back from the temporary file.
pub const INTERVALS_LOST: &str = "the temporary file with the intervals of this run cannot be \
                                  read: this result lacks some intervals";
/// Items per part. An agent holds hundreds of parts in memory.
const PART_ITEMS_MAX: usize = 8;

/// Part of the time series of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPart {
    /// Number of intervals in the result before those of this part. The client discards intervals
    /// beyond this number that were sent during the run.
    pub from: usize,
    /// Intervals that were not sent during the run.
    pub intervals: Vec<Interval>,
    /// Slices of the machine's time series, which follow those of all earlier parts.
    pub slices: Vec<MachineSlice>,
}

/// Passes the messages that end a run to `send`. `sent` intervals were sent during the run.
pub fn end_run(
    outcome: Result<RunResult, RunError>,
    sent: usize,
    send: &mut dyn FnMut(AgentMessage),
) {
    let outcome = outcome.map(|mut result| {
        if !result.intervals.is_whole() || !result.series.slices.is_whole() {
            result.add_note(INTERVALS_LOST);
        }
        let intervals = std::mem::take(&mut result.intervals);
        let slices = std::mem::take(&mut result.series.slices);
        let mut rest = intervals.iter_from(sent).map(Cow::into_owned);
        let mut slices = slices.iter().map(Cow::into_owned);
        let mut from = sent;
        let mut is_last = false;
        // At least one part, the empty last one, tells how many of the sent intervals count.
        while !is_last {
            let part = SeriesPart {
                from,
                intervals: rest.by_ref().take(PART_ITEMS_MAX).collect(),
                slices: slices.by_ref().take(PART_ITEMS_MAX).collect(),
            };
            from += part.intervals.len();
            is_last = part.intervals.is_empty() && part.slices.is_empty();
            send(AgentMessage::Series(Box::new(part)));
        }
        debug_assert!(
            from <= sent.max(intervals.len()),
            "the parts have no interval twice"
        );
        Box::new(result)
    });
    send(AgentMessage::Done(outcome));
}

/// Time series of a remote run, as received so far.
#[derive(Debug, Default)]
pub struct ReceivedSeries {
    intervals: Intervals,
    slices: SpillList<MachineSlice>,
    /// Whether fewer intervals arrived than were sent.
    is_incomplete: bool,
}

impl ReceivedSeries {
    /// Adds an interval that was sent during the run.
    pub fn add_interval(&mut self, interval: &Interval) {
        self.intervals.push(interval.clone());
    }

    /// Adds a part of the result's time series.
    pub fn add_part(&mut self, part: SeriesPart) {
        self.is_incomplete |= self.intervals.len() < part.from;
        if self.intervals.len() > part.from {
            self.intervals.truncate(part.from);
        }
        self.intervals.extend(part.intervals);
        self.slices.extend(part.slices);
    }

    /// Moves the series into the result, which arrived without them.
    pub fn complete(&mut self, result: &mut RunResult) {
        let received = std::mem::take(self);
        if received.is_incomplete {
            // The agent has the same note if it has lost intervals too.
            result.add_note(INTERVALS_LOST);
        }
        result.intervals = received.intervals;
        result.series.slices = received.slices;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::tests::empty;
    use crate::wire::json_line;

    fn interval(number: u64) -> Interval {
        let mut interval = Interval {
            start_ns: number,
            ..Interval::default()
        };
        interval.latency.record(1000 * number);
        interval.compacted()
    }

    fn result(intervals: u64, slices: u64) -> RunResult {
        let mut result = empty();
        result.intervals = (0..intervals).map(interval).collect();
        let slice = |number| MachineSlice {
            start_ns: number,
            ..MachineSlice::default()
        };
        result.series.slices = (0..slices).map(slice).collect();
        result
    }

    #[test]
    fn result_notes_intervals_lost_in_transfer() {
        let whole = result(100, 0);
        let mut series = ReceivedSeries::default();
        // 80 of the 90 intervals that the agent sent arrive.
        (10..90).for_each(|number| series.add_interval(&interval(number)));
        let mut received = whole.clone();
        end_run(Ok(whole), 90, &mut |message| {
            if let AgentMessage::Series(part) = message {
                series.add_part(*part);
            }
        });
        series.complete(&mut received);
        assert_eq!(received.intervals.len(), 90);
        assert_eq!(received.notes, [INTERVALS_LOST]);
    }

    #[test]
    fn intervals_lost_on_both_sides_have_one_note() {
        let mut received = result(1, 0);
        received.add_note(INTERVALS_LOST);
        let mut series = ReceivedSeries::default();
        series.add_part(SeriesPart {
            from: 1,
            intervals: Vec::new(),
            slices: Vec::new(),
        });
        series.complete(&mut received);
        assert_eq!(received.notes, [INTERVALS_LOST]);
    }

    #[test]
    fn result_comes_whole_in_parts_that_do_not_grow_with_it() {
        for (sent, of_result, slices) in [
            (0, 0, 0),
            (3, 3, 0),
            (3, 4, 1),
            (0, 100, 3),
            (90, 100, 1000),
            // The result has fewer intervals than were sent.
            (100, 90, 8),
        ] {
            let whole = result(of_result, slices);
            let mut series = ReceivedSeries::default();
            (0..sent).for_each(|number| series.add_interval(&interval(number)));
            let mut found = None;
            let sent = sent.min(of_result) as usize;
            end_run(Ok(whole.clone()), sent, &mut |message| {
                assert!(found.is_none(), "nothing follows");
                match message {
                    AgentMessage::Series(part) => {
                        assert!(part.intervals.len().max(part.slices.len()) <= PART_ITEMS_MAX);
                        series.add_part(*part);
                    }
                    AgentMessage::Done(Ok(mut result)) => {
                        assert!(result.intervals.is_empty() && result.series.slices.is_empty());
                        series.complete(&mut result);
                        found = Some(*result);
                    }
                    other => panic!("{}", json_line(&other)),
                }
            });
            assert_eq!(found, Some(whole), "{sent} of {of_result}");
        }
    }
}
