//! Counters of cache tiers in the answer of an OSD to `perf dump`. Pure.

use super::OsdOps;
use iosonde_result::ceph::CacheTierActivity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Activity of cache tiers on an OSD since its start. `osd` is the section of that name.
pub(super) fn tier_counters(osd: &Value) -> CacheTierActivity {
    let counter = |name: &str| osd[name].as_u64().unwrap_or(0);
    CacheTierActivity {
        hits: counter("op_cache_hit"),
        proxied_reads: counter("tier_proxy_read"),
        proxied_writes: counter("tier_proxy_write"),
        promotions: counter("tier_promote"),
        // The flushes of the agent and those of clients have own counters. An object is clean once
        // either has written it back.
        flushes: counter("tier_clean"),
        evictions: counter("tier_evict"),
        delays: counter("tier_delay"),
    }
}

/// Activity of all OSDs between two samples. `None` if no OSD answered both times.
pub(crate) fn tier_activity(
    before: &BTreeMap<u32, OsdOps>,
    after: &BTreeMap<u32, OsdOps>,
) -> Option<CacheTierActivity> {
    let both = after
        .iter()
        .filter_map(|(osd, after)| Some(after.tier.since(&before.get(osd)?.tier)));
    both.reduce(|mut all, osd| {
        all.merge(&osd);
        all
    })
}

#[cfg(test)]
mod tests {
    use super::super::osd_operations;
    use super::*;
    use serde_json::json;

    /// As an OSD of Ceph 16 answers `perf dump`, without counters that are not read.
    fn dump(hits: u64, promotions: u64) -> Value {
        json!({"osd": {
            "op": 700, "op_latency": {"avgcount": 700, "sum": 1.5, "avgtime": 0.002},
            "copyfrom": 0, "tier_promote": promotions, "tier_flush": 0, "tier_flush_fail": 0,
            "tier_try_flush": 4, "tier_try_flush_fail": 1, "tier_evict": 5, "tier_whiteout": 0,
            "tier_dirty": 40, "tier_clean": 3, "tier_delay": 0, "tier_proxy_read": 20,
            "tier_proxy_write": 10, "agent_wake": 9, "agent_skip": 2, "agent_flush": 4,
            "agent_evict": 5, "object_ctx_cache_hit": 600, "object_ctx_cache_total": 700,
            "op_cache_hit": hits,
            "osd_tier_flush_lat": {"avgcount": 3, "sum": 0.01, "avgtime": 0.0033},
            "osd_tier_promote_lat": {"avgcount": 7, "sum": 0.05, "avgtime": 0.007},
            "osd_tier_r_lat": {"avgcount": 20, "sum": 0.04, "avgtime": 0.002}
        }})
    }

    #[test]
    fn tier_activity_is_the_sum_of_osds_that_answered_twice() {
        let all = |dumps: &[(u32, Value)]| {
            let found = dumps
                .iter()
                .map(|(osd, dump)| (*osd, osd_operations(dump).unwrap()));
            found.collect::<BTreeMap<u32, OsdOps>>()
        };
        let before = all(&[(0, dump(100, 7)), (1, dump(10, 1))]);
        let after = all(&[(0, dump(160, 9)), (1, dump(50, 1)), (2, dump(999, 999))]);
        let activity = tier_activity(&before, &after).unwrap();
        assert_eq!((activity.hits, activity.promotions), (100, 2));
        assert_eq!((activity.proxied_reads, activity.evictions), (0, 0));
        assert_eq!(before[&0].tier.flushes, 3);
        assert_eq!(tier_activity(&BTreeMap::new(), &after), None);
        // Releases without these counters answer without them.
        let without = json!({"osd": {"op_latency": {"avgcount": 1, "sum": 0.1}}});
        assert_eq!(
            osd_operations(&without).unwrap().tier,
            CacheTierActivity::default()
        );
    }
}
