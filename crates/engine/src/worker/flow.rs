//! `flow`: jobs that share an id keep their I/O counts in the proportion of their weights.

use iosonde_job::plan::Flow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Counts that all workers of one flow share.
#[derive(Debug, Default)]
pub(crate) struct FlowPool {
    weight: AtomicI64,
    ios: AtomicU64,
}

/// One worker's share of a flow.
#[derive(Debug)]
pub(crate) struct FlowShare {
    rule: Flow,
    pool: Arc<FlowPool>,
    ios: u64,
}

impl FlowShare {
    /// Adds a worker to a flow.
    pub(crate) fn join(rule: Flow, pool: Arc<FlowPool>) -> FlowShare {
        pool.weight.fetch_add(rule.weight, Relaxed);
        FlowShare { rule, pool, ios: 0 }
    }

    /// Whether this worker is ahead of its share and has to wait.
    pub(crate) fn must_wait(&self) -> bool {
        let total_weight = self.pool.weight.load(Relaxed);
        // Continue if the other workers of the flow have ended.
        if total_weight <= self.rule.weight || self.ios == 0 {
            return false;
        }
        let mine = i128::from(self.ios) * i128::from(total_weight);
        mine > i128::from(self.pool.ios.load(Relaxed)) * i128::from(self.rule.weight)
            + i128::from(total_weight)
    }

    /// Returns the time to wait before the next check.
    pub(crate) fn sleep_ns(&self) -> u64 {
        self.rule.sleep_ns.max(10_000)
    }

    /// Counts an issued I/O.
    pub(crate) fn issued(&mut self) {
        self.ios += 1;
        self.pool.ios.fetch_add(1, Relaxed);
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.pool.weight.fetch_sub(self.rule.weight, Relaxed);
        let of_all = self.pool.ios.fetch_sub(self.ios, Relaxed);
        debug_assert!(
            of_all >= self.ios,
            "a flow counts the I/Os of all its workers"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_counts_follow_the_weights() {
        let pool = Arc::new(FlowPool::default());
        let rule = |weight| Flow {
            id: 1,
            weight,
            sleep_ns: 0,
        };
        let mut one = FlowShare::join(rule(1), pool.clone());
        let mut four = FlowShare::join(rule(4), pool.clone());
        for _ in 0..10_000 {
            if !one.must_wait() {
                one.issued();
            }
            if !four.must_wait() {
                four.issued();
            }
        }
        let ratio = four.ios as f64 / one.ios as f64;
        assert!((3.9..4.1).contains(&ratio), "{ratio}");
        drop(one);
        assert!(!four.must_wait(), "the last one of a flow goes on");
    }
}
