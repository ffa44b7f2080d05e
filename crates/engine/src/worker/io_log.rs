//! Logs of single I/Os or windows (`write_lat_log`, `write_bw_log`, `write_iops_log`,
//! `write_hist_log`) and the trace of `write_iolog`.
//!
//! A worker fills a chunk of entries and passes a full chunk to a writer thread. Logs reach the
//! disk during the run and survive a failed run. Chunks are allocated at the start and reused: a
//! worker without a free chunk waits for the writer, so no entry is lost.

use super::log_entry::CHUNK;
use super::log_exchange::ToWriter;
use crate::io::{Slab, Slot};
use iosonde_job::plan::{Direction, LogPrefixes};
use iosonde_result::fio::log::bandwidth_of_io;
use iosonde_result::histogram::{BUCKETS, index_of};

pub(crate) use super::log_entry::{IoLogKind, LogBatch, LogEntry};
pub(crate) use super::log_exchange::FromWorker;

#[derive(Debug, Clone, Copy, Default)]
struct LogWindow {
    start_ns: u64,
    count: u64,
    sum: u64,
    max: u64,
    bytes: u64,
}

/// The worker's side of its logs.
#[derive(Debug)]
pub(crate) struct IoLog {
    rule: LogPrefixes,
    /// Priority of I/Os without their own priority.
    own_priority: u16,
    /// Origin of the log times: the worker's start, or the end of its ramp.
    start_ns: u64,
    /// Origin of the trace times.
    begun_ns: u64,
    chunk: Vec<LogEntry>,
    to_writer: ToWriter,
    windows: [[LogWindow; 3]; 5],
    /// Whether there was an I/O of this kind and direction.
    used: [[bool; 3]; 5],
    histograms: Option<[Box<[u64]>; 3]>,
    histogram_start_ns: u64,
}

impl IoLog {
    /// Returns a log with times since `start_ns`, and the receiver of its batches. Ramp I/Os, which
    /// start before `start_ns`, are left out. `own_priority` is the job's, in the kernel's
    /// encoding.
    pub(crate) fn new(rule: &LogPrefixes, own_priority: u16, start_ns: u64) -> (IoLog, FromWorker) {
        let (to_writer, from_worker) = super::log_exchange::exchange(rule.hist.is_some());
        let empty = || vec![0u64; BUCKETS].into_boxed_slice();
        let log = IoLog {
            chunk: Vec::with_capacity(CHUNK),
            to_writer,
            windows: [[LogWindow {
                start_ns,
                ..LogWindow::default()
            }; 3]; 5],
            used: [[false; 3]; 5],
            histograms: rule.hist.is_some().then(|| [empty(), empty(), empty()]),
            histogram_start_ns: start_ns,
            start_ns,
            begun_ns: start_ns,
            own_priority,
            rule: rule.clone(),
        };
        (log, from_worker)
    }

    /// Sets the origin of the trace times: a trace includes the ramp.
    pub(crate) fn begun_at(self, begun_ns: u64) -> IoLog {
        IoLog { begun_ns, ..self }
    }

    /// Logs a submitted batch.
    pub(crate) fn submitted(
        &mut self,
        slab: &Slab,
        batch: &[u32],
        prepared_ns: u64,
        issue_ns: u64,
    ) {
        if self.rule.trace.is_some() {
            for index in batch {
                self.trace(&slab.slots[*index as usize], prepared_ns);
            }
        }
        if self.rule.lat.is_none() || issue_ns <= prepared_ns {
            return;
        }
        for index in batch {
            let slot = slab.slots[*index as usize];
            if slot.start_ns < self.start_ns {
                continue;
            }
            self.note(IoLogKind::Slat, &slot, issue_ns, issue_ns - prepared_ns);
        }
    }

    /// Adds a line to the trace. The rest of a short I/O adds no line.
    fn trace(&mut self, slot: &Slot, at_ns: u64) {
        if slot.moved > 0 {
            return;
        }
        self.push(LogEntry {
            kind: IoLogKind::Issued,
            op: slot.op,
            at_ns: at_ns.saturating_sub(self.begun_ns),
            value: slot.file.into(),
            block_bytes: slot.len,
            offset: slot.offset,
            priority: 0,
        });
    }

    /// Logs a completed I/O.
    pub(crate) fn completed(&mut self, slot: &Slot, now_ns: u64) {
        if slot.start_ns < self.start_ns {
            return;
        }
        let clat_ns = now_ns.saturating_sub(slot.issue_ns);
        if self.rule.lat.is_some() {
            self.note(IoLogKind::Clat, slot, now_ns, clat_ns);
            self.note(
                IoLogKind::Lat,
                slot,
                now_ns,
                now_ns.saturating_sub(slot.prepared_ns),
            );
        }
        if self.rule.bw.is_some() {
            let rate = bandwidth_of_io(slot.len.into(), clat_ns);
            self.note(IoLogKind::Bw, slot, now_ns, rate);
        }
        if self.rule.iops.is_some() {
            self.note(IoLogKind::Iops, slot, now_ns, 1);
        }
        if let (Some(histograms), Some(direction)) = (&mut self.histograms, slot.op.direction()) {
            histograms[direction as usize][index_of(clat_ns)] += 1;
            if now_ns - self.histogram_start_ns >= self.rule.hist_ms.max(1) * 1_000_000 {
                self.close_histograms(now_ns);
            }
        }
    }

    fn note(&mut self, kind: IoLogKind, slot: &Slot, now_ns: u64, value: u64) {
        let Some(direction) = slot.op.direction() else {
            return;
        };
        let at_ns = now_ns.saturating_sub(self.start_ns);
        if self.rule.avg_ms == 0 {
            return self.push(LogEntry {
                kind,
                op: slot.op,
                at_ns,
                value,
                block_bytes: slot.len,
                offset: slot.offset,
                priority: if slot.priority == 0 {
                    self.own_priority
                } else {
                    slot.priority
                },
            });
        }
        self.close_windows(kind, direction, now_ns);
        self.used[kind as usize][direction as usize] = true;
        let window = &mut self.windows[kind as usize][direction as usize];
        window.count += 1;
        window.sum += value;
        window.max = window.max.max(value);
        window.bytes += u64::from(slot.len);
    }

    /// Writes the finished windows. A window without an I/O has the rate 0 and is written too.
    fn close_windows(&mut self, kind: IoLogKind, direction: Direction, now_ns: u64) {
        let length_ns = self.rule.avg_ms * 1_000_000;
        loop {
            let window = self.windows[kind as usize][direction as usize];
            if now_ns < window.start_ns + length_ns {
                return;
            }
            let end_ns = window.start_ns + length_ns;
            self.close_window(kind, direction, window, end_ns);
            self.windows[kind as usize][direction as usize] = LogWindow {
                start_ns: end_ns,
                ..LogWindow::default()
            };
        }
    }

    fn close_window(
        &mut self,
        kind: IoLogKind,
        direction: Direction,
        window: LogWindow,
        end_ns: u64,
    ) {
        let length_ns = (end_ns - window.start_ns).max(1);
        let per_second =
            |amount: u64| (u128::from(amount) * 1_000_000_000 / u128::from(length_ns)) as u64;
        let value = match kind {
            IoLogKind::Bw => per_second(window.bytes) / 1024,
            IoLogKind::Iops => per_second(window.count),
            _ if window.count == 0 => return,
            _ if self.rule.max_value => window.max,
            _ => window.sum / window.count,
        };
        let at_ns = end_ns.saturating_sub(self.start_ns);
        self.push(LogEntry {
            kind,
            op: direction.into(),
            at_ns,
            value,
            block_bytes: 0,
            offset: 0,
            priority: 0,
        });
    }

    fn push(&mut self, entry: LogEntry) {
        self.chunk.push(entry);
        if self.chunk.len() == CHUNK {
            self.send_chunk();
        }
    }

    fn send_chunk(&mut self) {
        match self.to_writer.empty_chunk() {
            Some(empty) => {
                let full = std::mem::replace(&mut self.chunk, empty);
                self.to_writer.send_batch(LogBatch::Entries(full));
            }
            // The writer is gone only after a failure, which it reports itself.
            None => self.chunk.clear(),
        }
    }

    fn close_histograms(&mut self, now_ns: u64) {
        let at_ns = now_ns.saturating_sub(self.start_ns);
        let Some(histograms) = &mut self.histograms else {
            return;
        };
        for (direction, counts) in Direction::ALL.into_iter().zip(histograms) {
            if counts.iter().all(|count| *count == 0) {
                continue;
            }
            match self.to_writer.empty_histogram() {
                Some(empty) => self.to_writer.send_batch(LogBatch::Histogram {
                    direction,
                    at_ns,
                    counts: std::mem::replace(counts, empty),
                }),
                None => counts.fill(0),
            }
        }
        self.histogram_start_ns = now_ns;
    }

    /// Passes the remaining entries to the writer.
    pub(crate) fn finish(mut self, now_ns: u64) {
        if self.rule.avg_ms > 0 {
            for kind in IoLogKind::ALL {
                for direction in Direction::ALL {
                    if self.used[kind as usize][direction as usize] {
                        self.close_windows(kind, direction, now_ns);
                        self.close_last_window(kind, direction, now_ns);
                    }
                }
            }
        }
        if self.histograms.is_some() {
            self.close_histograms(now_ns);
        }
        let last = std::mem::take(&mut self.chunk);
        self.to_writer.send_batch(LogBatch::Entries(last));
    }

    /// Writes the last window, which the end cut short. A rate over less than half a window is too
    /// imprecise and is left out, unless this is the only window.
    fn close_last_window(&mut self, kind: IoLogKind, direction: Direction, now_ns: u64) {
        let window = self.windows[kind as usize][direction as usize];
        let is_rate = matches!(kind, IoLogKind::Bw | IoLogKind::Iops);
        let half_ns = self.rule.avg_ms * 1_000_000 / 2;
        let is_reported = window.start_ns == self.start_ns || now_ns >= window.start_ns + half_ns;
        if window.count > 0 && (is_reported || !is_rate) {
            self.close_window(kind, direction, window, now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Op;
    use strum::VariantArray;

    const MS: u64 = 1_000_000;

    fn entries(end_ms: u64, ios: &[(u64, Op)]) -> Vec<LogEntry> {
        let rule = LogPrefixes {
            bw: Some(String::new()),
            lat: Some(String::new()),
            avg_ms: 100,
            ..LogPrefixes::default()
        };
        let (mut log, from_worker) = IoLog::new(&rule, 0, 0);
        for (at_ms, op) in ios {
            let slot = Slot {
                len: 1024 * 1024,
                op: *op,
                start_ns: at_ms * MS - MS,
                issue_ns: at_ms * MS - MS,
                ..Slot::IDLE
            };
            log.completed(&slot, at_ms * MS);
        }
        log.finish(end_ms * MS);
        let batches = std::iter::from_fn(|| from_worker.take()).flat_map(|batch| match batch {
            LogBatch::Entries(entries) => entries,
            LogBatch::Histogram { .. } => Vec::new(),
        });
        batches.collect()
    }

    fn select_entries(
        entries: &[LogEntry],
        kind: IoLogKind,
        direction: Direction,
    ) -> Vec<(u64, u64)> {
        entries
            .iter()
            .filter(|entry| entry.kind == kind && entry.op == direction.into())
            .map(|entry| (entry.at_ns / MS, entry.value))
            .collect()
    }

    #[test]
    fn windows_without_an_io_have_a_rate_of_zero() {
        let found = entries(301, &[(10, Op::Read), (250, Op::Read)]);
        // 1 MiB in 0.1 s.
        let expected = [(100, 10_240), (200, 0), (300, 10_240)];
        assert_eq!(
            select_entries(&found, IoLogKind::Bw, Direction::Read),
            expected
        );
        let expected = [(100, MS), (300, MS)];
        assert_eq!(
            select_entries(&found, IoLogKind::Clat, Direction::Read),
            expected
        );
    }

    #[test]
    fn directions_without_an_io_have_no_lines() {
        let found = entries(301, &[(10, Op::Read), (250, Op::Read)]);
        assert!(found.iter().all(|entry| entry.op == Op::Read));
    }

    #[test]
    fn very_short_last_window_has_no_rate() {
        let bw = |end_ms, ios: &[(u64, Op)]| {
            select_entries(&entries(end_ms, ios), IoLogKind::Bw, Direction::Write)
        };
        let ios = [(10, Op::Write), (101, Op::Write)];
        assert_eq!(bw(101, &ios), [(100, 10_240)]);
        assert_eq!(bw(150, &ios), [(100, 10_240), (150, 20_480)]);
        assert_eq!(bw(20, &ios[..1]), [(20, 51_200)], "all there is");
        let clat = select_entries(&entries(101, &ios), IoLogKind::Clat, Direction::Write);
        assert_eq!(clat, [(100, MS), (101, MS)]);
    }

    #[test]
    fn averaged_kinds_are_listed_by_number() {
        let (averaged, issued) = IoLogKind::VARIANTS.split_at(IoLogKind::ALL.len());
        assert_eq!(
            (&IoLogKind::ALL[..], issued),
            (averaged, &[IoLogKind::Issued][..])
        );
        let numbers = IoLogKind::ALL.map(|kind| kind as usize);
        assert_eq!(numbers, [0, 1, 2, 3, 4], "indices of the windows");
    }
}
