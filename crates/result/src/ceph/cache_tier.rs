//! Activity of a cluster's cache tiers during a run.

use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Activity of all cache tiers of a cluster during a run, from the counters of its OSDs. It
/// includes the operations of other clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CacheTierActivity {
    /// Operations that found their object in a tier. An operation that waited for the promotion of
    /// its object counts too.
    pub hits: u64,
    /// Reads that a tier passed on to its base pool.
    pub proxied_reads: u64,
    /// Writes that a tier passed on to its base pool.
    pub proxied_writes: u64,
    /// Objects that were copied from a base pool to its tier.
    pub promotions: u64,
    /// Objects that were written back to a base pool.
    pub flushes: u64,
    /// Objects that were removed from a tier to make room.
    pub evictions: u64,
    /// Operations that waited because a tier was full.
    #[serde(default)]
    pub delays: u64,
}

impl CacheTierActivity {
    /// Returns the share of operations that found their object in a tier. `None` without any.
    pub fn hit_rate(&self) -> Option<f64> {
        let all = self.hits + self.proxied_reads + self.proxied_writes;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }

    /// Adds the activity during another run, or of another OSD.
    pub fn merge(&mut self, other: &CacheTierActivity) {
        self.hits += other.hits;
        self.proxied_reads += other.proxied_reads;
        self.proxied_writes += other.proxied_writes;
        self.promotions += other.promotions;
        self.flushes += other.flushes;
        self.evictions += other.evictions;
        self.delays += other.delays;
    }

    /// Returns the activity since `before`. All of it if the OSD was restarted since then, because
    /// its counters started from zero.
    #[must_use]
    pub fn since(&self, before: &CacheTierActivity) -> CacheTierActivity {
        let pairs = [
            (self.hits, before.hits),
            (self.proxied_reads, before.proxied_reads),
            (self.proxied_writes, before.proxied_writes),
            (self.promotions, before.promotions),
            (self.flushes, before.flushes),
            (self.evictions, before.evictions),
            (self.delays, before.delays),
        ];
        if pairs.iter().any(|(now, earlier)| now < earlier) {
            return *self;
        }
        let [
            hits,
            proxied_reads,
            proxied_writes,
            promotions,
            flushes,
            evictions,
            delays,
        ] = pairs.map(|(now, earlier)| now - earlier);
        CacheTierActivity {
            hits,
            proxied_reads,
            proxied_writes,
            promotions,
            flushes,
            evictions,
            delays,
        }
    }
}

impl std::fmt::Display for CacheTierActivity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.hit_rate() {
            Some(rate) => write!(formatter, "{:.1}% hits", rate * 100.0)?,
            None => formatter.write_str("no operations")?,
        }
        let counts = [
            (self.promotions, "promotion"),
            (self.flushes, "flush"),
            (self.evictions, "eviction"),
        ];
        for (count, one) in counts {
            let ending = match (count, one) {
                (1, _) => "",
                (_, "flush") => "es",
                _ => "s",
            };
            write!(
                formatter,
                ", {} {one}{ending}",
                words::iops_text(count as f64)
            )?;
        }
        if self.delays > 0 {
            let delays = words::iops_text(self.delays as f64);
            write!(formatter, ", {delays} operations waited for room")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_activity_is_counted_and_described() {
        let before = CacheTierActivity {
            hits: 100,
            promotions: 10,
            ..CacheTierActivity::default()
        };
        let after = CacheTierActivity {
            hits: 400,
            proxied_reads: 90,
            proxied_writes: 10,
            promotions: 11,
            flushes: 2,
            evictions: 1500,
            delays: 3,
        };
        let run = after.since(&before);
        assert_eq!(run.hit_rate(), Some(0.75));
        assert_eq!(
            run.to_string(),
            "75.0% hits, 1 promotion, 2 flushes, 1.50k evictions, 3 operations waited for room"
        );
        let mut both = run;
        both.merge(&run);
        assert_eq!((both.hits, both.evictions), (600, 3000));
        assert_eq!(before.since(&after), before, "the OSD was restarted");
        let none = CacheTierActivity::default();
        assert_eq!(none.hit_rate(), None);
        assert_eq!(
            none.to_string(),
            "no operations, 0 promotions, 0 flushes, 0 evictions"
        );
    }
}
