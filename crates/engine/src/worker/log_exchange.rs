//! Log buffers, which circulate between a worker and the writer thread.
//!
//! All buffers are allocated before the worker starts. A mutex and a condition variable replace a
//! channel, so waiting allocates nothing. The lock is taken once per thousands of entries.

use super::log_entry::{CHUNK, LogBatch, LogEntry};
use iosonde_result::histogram::BUCKETS;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Number of chunks, besides the worker's own. A chunk takes up memory only after its first use.
const CHUNKS: usize = 16;
/// Number of histograms, besides the worker's three: two windows.
const HISTOGRAMS: usize = 6;

#[derive(Debug, Default)]
struct ExchangeState {
    full: VecDeque<LogBatch>,
    /// The chunk returned last is used first, as its memory is likely still cached.
    chunks: Vec<Vec<LogEntry>>,
    histograms: Vec<Box<[u64]>>,
    worker_gone: bool,
    writer_gone: bool,
}

#[derive(Debug, Default)]
struct LogExchange {
    state: Mutex<ExchangeState>,
    changed: Condvar,
}

impl LogExchange {
    fn lock(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut ExchangeState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for an item and returns it. Returns `None` once the other side is gone. There is no
    /// deadline: entries must not be lost, and a write of the other side cannot be cancelled.
    fn wait_for<T>(
        &self,
        take: impl Fn(&mut ExchangeState) -> Option<T>,
        is_gone: impl Fn(&ExchangeState) -> bool,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            let taken = take(&mut state);
            if taken.is_some() || is_gone(&state) {
                return taken;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The worker's side.
#[derive(Debug)]
pub(super) struct ToWriter(Arc<LogExchange>);

/// The writer's side, which receives the worker's batches.
#[derive(Debug)]
pub(crate) struct FromWorker(Arc<LogExchange>);

/// Returns both sides, with empty histograms if the job logs histograms.
pub(super) fn exchange(with_histograms: bool) -> (ToWriter, FromWorker) {
    let histograms = if with_histograms { HISTOGRAMS } else { 0 };
    let state = ExchangeState {
        full: VecDeque::with_capacity(CHUNKS + 1 + histograms + 3),
        chunks: (0..CHUNKS).map(|_| Vec::with_capacity(CHUNK)).collect(),
        histograms: (0..histograms)
            .map(|_| vec![0; BUCKETS].into_boxed_slice())
            .collect(),
        worker_gone: false,
        writer_gone: false,
    };
    let exchange = Arc::new(LogExchange {
        state: Mutex::new(state),
        changed: Condvar::new(),
    });
    (ToWriter(exchange.clone()), FromWorker(exchange))
}

impl ToWriter {
    /// Passes a batch to the writer. A writer that has failed reports this itself.
    pub(super) fn send_batch(&self, batch: LogBatch) {
        self.0.change(|state| {
            assert!(
                state.full.len() < state.full.capacity(),
                "each batch has room"
            );
            state.full.push_back(batch);
        });
    }

    /// Waits for an empty chunk; `None` if the writer is gone.
    pub(super) fn empty_chunk(&self) -> Option<Vec<LogEntry>> {
        self.0
            .wait_for(|state| state.chunks.pop(), |state| state.writer_gone)
    }

    /// Waits for an empty histogram; `None` if the writer is gone.
    pub(super) fn empty_histogram(&self) -> Option<Box<[u64]>> {
        self.0
            .wait_for(|state| state.histograms.pop(), |state| state.writer_gone)
    }
}

impl FromWorker {
    /// Waits for the next batch, to be given back after use; `None` once the worker has ended.
    pub(crate) fn take(&self) -> Option<LogBatch> {
        self.0
            .wait_for(|state| state.full.pop_front(), |state| state.worker_gone)
    }

    /// Returns a batch for reuse.
    pub(crate) fn return_batch(&self, batch: LogBatch) {
        match batch {
            LogBatch::Entries(mut entries) => {
                entries.clear();
                self.0.change(|state| {
                    assert!(state.chunks.len() <= CHUNKS, "a chunk is given back once");
                    state.chunks.push(entries);
                });
            }
            LogBatch::Histogram { mut counts, .. } => {
                counts.fill(0);
                self.0.change(|state| state.histograms.push(counts));
            }
        }
    }
}

impl Drop for ToWriter {
    fn drop(&mut self) {
        self.0.change(|state| state.worker_gone = true);
    }
}

impl Drop for FromWorker {
    fn drop(&mut self) {
        self.0.change(|state| state.writer_gone = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries_of(batch: &LogBatch) -> usize {
        match batch {
            LogBatch::Entries(entries) => entries.capacity(),
            LogBatch::Histogram { .. } => 0,
        }
    }

    #[test]
    fn log_chunks_are_reused() {
        let (worker, writer) = exchange(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(batch) = writer.take() {
                    assert_eq!(entries_of(&batch), CHUNK, "one that was made at the start");
                    writer.return_batch(batch);
                }
            });
            let worker = worker;
            for _ in 0..10 * CHUNKS {
                let chunk = worker.empty_chunk().unwrap();
                assert!(chunk.is_empty());
                worker.send_batch(LogBatch::Entries(chunk));
            }
        });
    }

    #[test]
    fn log_exchange_ends_when_its_peer_is_dropped() {
        let (worker, writer) = exchange(true);
        drop(writer);
        while worker.empty_chunk().is_some() {}
        while worker.empty_histogram().is_some() {}
        let (worker, writer) = exchange(true);
        worker.send_batch(LogBatch::Entries(Vec::new()));
        drop(worker);
        assert!(writer.take().is_some());
        assert!(writer.take().is_none());
    }
}
