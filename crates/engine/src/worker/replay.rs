//! Replays a trace: its I/Os in their order, at their times.

use iosonde_job::plan::Replay;
use iosonde_job::trace::{Timing, Trace, TracedIo, TracedOp};
use iosonde_workload::{Io, Op};
use std::sync::Arc;

/// Returns the I/Os of a trace and their start times.
///
/// Version 3 traces have a schedule: a late I/O does not delay the next ones, and its total latency
/// counts from the due time. Other traces have pauses, which start at the previous I/O.
#[derive(Debug, Clone)]
pub(crate) struct Replayer {
    trace: Arc<Trace>,
    next: usize,
    stalls: bool,
    start_ns: u64,
    /// Time of the first I/O, the origin of the other times.
    first_at_ns: u64,
    last_at_ns: u64,
    due_ns: Option<u64>,
    reopened: bool,
}

impl Replayer {
    /// Creates a replay that starts at `start_ns`.
    pub(crate) fn new(trace: Arc<Trace>, rule: &Replay, start_ns: u64) -> Replayer {
        let first_at_ns = trace.ios.iter().map(|io| io.at_ns).min().unwrap_or(0);
        // Equal times of all I/Os carry no information.
        let has_times = trace.ios.iter().any(|io| io.at_ns != first_at_ns);
        Replayer {
            stalls: has_times && !rule.no_stall,
            trace,
            next: 0,
            start_ns,
            first_at_ns,
            last_at_ns: first_at_ns,
            due_ns: None,
            reopened: false,
        }
    }

    /// Returns the next I/O, or `None` at the end of the trace.
    pub(crate) fn next_io(&mut self, now_ns: u64) -> Option<Io> {
        let io = *self.trace.ios.get(self.next)?;
        self.next += 1;
        self.due_ns = self.stalls.then(|| self.due(&io, now_ns)).flatten();
        self.last_at_ns = io.at_ns;
        self.reopened = io.reopened;
        Some(Io {
            offset: io.offset,
            len: io.len,
            file: io.file,
            op: match io.op {
                TracedOp::Data(direction) => direction.into(),
                TracedOp::Sync => Op::Fsync,
                TracedOp::Datasync => Op::Fdatasync,
                TracedOp::SyncFileRange => Op::SyncFileRange,
            },
        })
    }

    /// Whether the trace closed and opened the file of the last returned I/O again before that I/O.
    pub(crate) fn is_reopened(&self) -> bool {
        self.reopened
    }

    /// Returns when the last returned I/O may start; `None` stands for at once.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    fn due(&self, io: &TracedIo, now_ns: u64) -> Option<u64> {
        match self.trace.timing {
            Timing::Stamps => Some(self.start_ns + (io.at_ns - self.first_at_ns)),
            Timing::Pauses => match io.at_ns - self.last_at_ns {
                0 => None,
                pause_ns => Some(now_ns + pause_ns),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::trace::parse;

    fn dues(text: &str, rule: &Replay) -> Vec<Option<u64>> {
        let trace = Arc::new(parse(text.as_bytes()).unwrap());
        let mut replayer = Replayer::new(trace, rule, 1_000_000);
        let mut now_ns = 1_500_000;
        std::iter::from_fn(|| {
            replayer.next_io(now_ns)?;
            now_ns += 500_000;
            Some(replayer.due_ns())
        })
        .collect()
    }

    #[test]
    fn replay_stamps_are_absolute_and_pauses_relative() {
        let v3 = "fio version 3 iolog\n100 f read 0 1\n100 f read 1 1\n400 f read 2 1";
        let keep = Replay::default();
        assert_eq!(
            dues(v3, &keep),
            [Some(1_000_000), Some(1_000_000), Some(1_300_000)]
        );
        let v2 = "fio version 2 iolog\nf read 0 1\nf wait 300 0\nf read 1 1\nf read 2 1";
        assert_eq!(dues(v2, &keep), [None, Some(2_300_000), None]);
        let no_stall = Replay {
            no_stall: true,
            ..Replay::default()
        };
        assert_eq!(dues(v3, &no_stall), [None, None, None]);
        let untimed = "fio version 2 iolog\nf read 0 1\nf read 1 1";
        assert_eq!(dues(untimed, &keep), [None, None]);
    }
}
