//! Rate limits: token buckets and the shared link.
//!
//! Each computes, at the arrival of an I/O, the earliest time at which the I/O may complete. It
//! runs in parallel with the servers: an I/O completes when its service is over and all its limits
//! allow it. A token bucket therefore limits the rate exactly and adds no latency below that rate.

/// A token bucket by the generic cell rate algorithm, whose state is the time when it is full.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    /// Time to gain one token, in nanoseconds.
    token_ns: f64,
    /// Capacity in tokens beyond one token.
    burst: f64,
    full_at_ns: f64,
}

impl TokenBucket {
    /// A full bucket that gains `per_second` tokens per second.
    pub fn new(per_second: f64, burst: f64) -> TokenBucket {
        TokenBucket {
            token_ns: 1e9 / per_second,
            burst,
            full_at_ns: 0.0,
        }
    }

    /// Takes `tokens` at `now_ns`; returns when they are available. `speed` scales the rate.
    #[inline]
    pub fn take(&mut self, now_ns: f64, tokens: f64, speed: f64) -> f64 {
        let token_ns = self.token_ns / speed;
        let granted_ns = now_ns.max(self.full_at_ns - self.burst * token_ns);
        self.full_at_ns = self.full_at_ns.max(now_ns) + tokens * token_ns;
        granted_ns
    }
}

/// A link that carries one I/O at a time, in the order of arrival.
#[derive(Debug, Clone)]
pub(super) struct SerialLink {
    byte_ns: f64,
    free_at_ns: f64,
}

impl SerialLink {
    pub(super) fn new(bytes_per_second: u64) -> SerialLink {
        SerialLink {
            byte_ns: 1e9 / bytes_per_second as f64,
            free_at_ns: 0.0,
        }
    }

    /// The time when `bytes` have passed the link. They were requested at `now_ns` and leave the
    /// servers at `ready_ns`. `speed` scales the rate.
    #[inline]
    pub(super) fn carry(&mut self, now_ns: f64, ready_ns: f64, bytes: f64, speed: f64) -> f64 {
        let transfer_ns = bytes * self.byte_ns / speed;
        let turn_ns = now_ns.max(self.free_at_ns);
        self.free_at_ns = turn_ns + transfer_ns;
        ready_ns.max(turn_ns) + transfer_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bucket_grants_its_burst_then_its_rate() {
        let mut bucket = TokenBucket::new(1e9, 3.0);
        let grants: Vec<f64> = (0..6).map(|_| bucket.take(0.0, 1.0, 1.0)).collect();
        assert_eq!(grants, [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
    }

    #[test]
    fn idle_bucket_fills_up_to_its_burst() {
        let mut bucket = TokenBucket::new(1e9, 2.0);
        for _ in 0..3 {
            bucket.take(0.0, 1.0, 1.0);
        }
        let grants: Vec<f64> = (0..5).map(|_| bucket.take(100.0, 1.0, 1.0)).collect();
        assert_eq!(grants, [100.0, 100.0, 100.0, 101.0, 102.0]);
    }

    #[test]
    fn link_adds_transfer_time_and_queueing() {
        let mut link = SerialLink::new(1_000_000_000);
        assert_eq!(link.carry(0.0, 50.0, 10.0, 1.0), 60.0);
        assert_eq!(link.carry(0.0, 5.0, 10.0, 1.0), 20.0);
        assert_eq!(link.carry(0.0, 5.0, 10.0, 2.0), 25.0);
    }

    proptest! {
        /// In any window a bucket grants at most its burst, one token, and the tokens gained in the
        /// window.
        #[test]
        fn bucket_rate_holds_over_any_window(
            gaps in prop::collection::vec(0u32..4000, 1..200),
            burst in 0u32..20,
        ) {
            let mut bucket = TokenBucket::new(1e6, f64::from(burst));
            let mut now = 0.0;
            let grants: Vec<f64> = gaps
                .iter()
                .map(|gap| {
                    now += f64::from(*gap);
                    bucket.take(now, 1.0, 1.0)
                })
                .collect();
            for first in 0..grants.len() {
                for last in first..grants.len() {
                    let most = 1.0 + f64::from(burst) + (grants[last] - grants[first]) / 1e3;
                    prop_assert!((last - first + 1) as f64 <= most + 1e-6);
                }
            }
        }
    }
}
