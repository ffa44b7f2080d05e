//! A message of a run in the form kept for clients that reconnect.

use iosonde_result::interval::Interval;
use iosonde_result::spill_list::BlockItem;
use iosonde_result::wire::{AgentMessage, json_line};
use std::sync::Arc;

/// Intervals, one per second, are kept in a form smaller than their line.
#[derive(Debug, Clone)]
pub(crate) enum KeptMessage {
    /// An interval of the run.
    Interval(Arc<Interval>),
    /// Any other message, encoded as a line.
    Line(Arc<str>),
}

const INTERVAL: u8 = 0;
const LINE: u8 = 1;

impl KeptMessage {
    /// Returns the message as a line.
    pub(crate) fn line(&self) -> Arc<str> {
        match self {
            KeptMessage::Interval(interval) => {
                json_line(&AgentMessage::Interval(Box::new((**interval).clone()))).into()
            }
            KeptMessage::Line(line) => line.clone(),
        }
    }
}

impl BlockItem for KeptMessage {
    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            KeptMessage::Interval(interval) => {
                bytes.push(INTERVAL);
                interval.encode(bytes);
            }
            KeptMessage::Line(line) => {
                bytes.push(LINE);
                bytes.extend((line.len() as u64).to_le_bytes());
                bytes.extend(line.as_bytes());
            }
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<KeptMessage> {
        let (kind, rest) = bytes.split_first()?;
        *bytes = rest;
        if *kind == INTERVAL {
            let interval = Interval::decode(bytes)?;
            return Some(KeptMessage::Interval(Arc::new(interval)));
        }
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (line, rest) = rest.split_at_checked(length)?;
        *bytes = rest;
        let line = std::str::from_utf8(line).ok()?;
        Some(KeptMessage::Line(line.into()))
    }
}
