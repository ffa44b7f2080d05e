//! Facts about a Ceph cluster during a run.

use super::Fact;
use iosonde_result::ceph::CephSide;
use iosonde_study::words;

/// State of a Ceph cluster and its activity during a run.
pub(crate) fn ceph_facts(side: &CephSide) -> Vec<Fact> {
    let osds = &side.osds;
    let mut facts = Vec::new();
    // A cluster that was never sampled has no state.
    if side.activity.looks > 0 {
        let state = format!(
            "{}, {} of {} OSDs up, {} in",
            side.health, osds.up, osds.total, osds.r#in
        );
        facts.push(("cluster", state));
    }
    let waiting = side.activity.waiting_text();
    facts.extend(waiting.map(|text| ("recovery", text)));
    let version = side.version.as_ref();
    facts.extend(version.map(|version| ("release", version.clone())));
    for pool in side.pools() {
        let tier = pool.cache_tier.as_ref();
        let tier = tier.map_or(String::new(), |tier| format!(", cache tier {tier}"));
        let pool = format!("{}, {}, {} PGs{tier}", pool.name, pool.redundancy, pool.pgs);
        facts.push(("pool", pool));
    }
    if let Some(hardware) = &side.hardware {
        let lines = [
            ("OSD devices", hardware.devices_text()),
            ("shared hosts", hardware.shared_hosts_text()),
            ("OSD networks", hardware.networks_text()),
        ];
        facts.extend(
            lines
                .into_iter()
                .filter_map(|(name, text)| Some((name, text?))),
        );
    }
    let tier = side.cache_tier.as_ref();
    facts.extend(tier.map(|tier| ("cache tier", tier.to_string())));
    let servers = side.metadata_servers.iter();
    facts.extend(servers.map(|server| ("metadata server", server.to_string())));
    if let Some(slowest) = side.osd_latency.first().filter(|osd| osd.ops > 0) {
        let latency = words::latency(slowest.op_ns);
        let mut value = format!("osd.{}, {latency} per operation", slowest.osd);
        // Ceph reports the commit latency in whole milliseconds.
        if let Some(commit_ns) = slowest.commit_ns.filter(|ns| *ns > 0) {
            value += &format!(", commit {}", words::latency(commit_ns as f64));
        }
        facts.push(("slowest OSD", value));
    }
    facts.extend(ceph_unknown(side));
    facts
}

/// The same facts in one sentence.
pub fn cluster(side: &CephSide) -> String {
    let facts = ceph_facts(side).into_iter();
    let clauses: Vec<String> = facts
        .map(|(name, text)| match name {
            "cluster" => text,
            "not known" => format!("{name}: {text}"),
            name => format!("{name} {text}"),
        })
        .collect();
    format!("Cluster: {}.", clauses.join("; "))
}

/// Facts that a cluster did not report, for example for lack of capabilities; the first in full.
pub fn ceph_unknown(side: &CephSide) -> Option<Fact> {
    let (first, others) = side.notes.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    Some(("not known", format!("{first}{more}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::ceph::{CacheTierActivity, MetadataServer};
    use iosonde_result::ceph_hardware::CephHardware;

    #[test]
    fn ceph_cluster_without_samples_shows_only_notes() {
        let note = "the cluster of the pool p could not be queried: no key".to_owned();
        let mut side = CephSide {
            notes: vec![note.clone()],
            ..CephSide::default()
        };
        assert_eq!(ceph_facts(&side), [("not known", note.clone())]);
        assert_eq!(cluster(&side), format!("Cluster: not known: {note}."));
        side.health = "HEALTH_OK".to_owned();
        side.activity.looks = 1;
        assert_eq!(ceph_facts(&side)[0].1, "HEALTH_OK, 0 of 0 OSDs up, 0 in");
    }

    #[test]
    fn stuck_recovery_and_hardware_are_facts() {
        let mut side = CephSide::default();
        side.activity.looks = 4;
        side.activity.recovery_waiting = 4;
        side.hardware = Some(CephHardware {
            device_classes: [("ssd".to_owned(), 3)].into(),
            ..CephHardware::default()
        });
        let facts = ceph_facts(&side);
        let text = |name: &str| {
            let found = facts.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| text.as_str())
        };
        assert_eq!(
            text("recovery"),
            Some("due, but moved no data in 4 of 4 samples")
        );
        assert_eq!(text("OSD devices"), Some("3 ssd"));
        assert_eq!(text("shared hosts"), None);
    }

    #[test]
    fn cache_tier_and_metadata_servers_are_facts() {
        let side = CephSide {
            cache_tier: Some(CacheTierActivity {
                hits: 3,
                proxied_reads: 1,
                promotions: 1,
                ..CacheTierActivity::default()
            }),
            metadata_servers: vec![MetadataServer {
                name: "a".to_owned(),
                rank: 0,
                requests_per_s: 1200,
                cached_inodes: 15_000,
                caps: 12,
            }],
            ..CephSide::default()
        };
        let tier = "75.0% hits, 1 promotion, 0 flushes, 0 evictions".to_owned();
        let server = "a (rank 0), up to 1.20k requests/s, 15.0k inodes in its cache, 12 caps";
        let expected = [("cache tier", tier), ("metadata server", server.to_owned())];
        assert_eq!(ceph_facts(&side), expected);
    }
}
