//! What a Ceph cluster was during a run.

use super::Fact;
use iosonde_result::ceph::CephSide;
use iosonde_study::words;

/// What a Ceph cluster is, and how it was during a run.
pub(crate) fn ceph(side: &CephSide) -> Vec<Fact> {
    let osds = &side.osds;
    let mut facts = Vec::new();
    // One that could not be looked at has said nothing.
    if side.activity.looks > 0 {
        let state = format!(
            "{}, {} of {} OSDs up, {} in",
            side.health, osds.up, osds.total, osds.r#in
        );
        facts.push(("cluster", state));
    }
    for pool in side.pools() {
        let tier = pool.cache_tier.as_ref();
        let tier = tier.map_or(String::new(), |tier| format!(", cache tier {tier}"));
        let pool = format!("{}, {}, {} PGs{tier}", pool.name, pool.redundancy, pool.pgs);
        facts.push(("pool", pool));
    }
    if let Some(slowest) = side.osd_latency.first().filter(|osd| osd.ops > 0) {
        let latency = words::latency(slowest.op_ns);
        let mut value = format!("osd.{}, {latency} an operation", slowest.osd);
        // It is told in whole milliseconds.
        if let Some(commit_ns) = slowest.commit_ns.filter(|ns| *ns > 0) {
            value += &format!(", commit {}", words::latency(commit_ns as f64));
        }
        facts.push(("slowest OSD", value));
    }
    facts.extend(ceph_unknown(side));
    facts
}

/// The same in one sentence.
pub(crate) fn cluster(side: &CephSide) -> String {
    let facts = ceph(side).into_iter();
    let told: Vec<String> = facts
        .map(|(name, text)| match name {
            "cluster" => text,
            "not known" => format!("{name}: {text}"),
            name => format!("{name} {text}"),
        })
        .collect();
    format!("Cluster: {}.", told.join("; "))
}

/// What a Ceph cluster would not tell, as a client of few rights finds. Of what each OSD refused, one stands for all.
pub(crate) fn ceph_unknown(side: &CephSide) -> Option<Fact> {
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

    #[test]
    fn of_a_cluster_that_could_not_be_asked_only_that_is_told() {
        let note = "the cluster of the pool p could not be asked: no key".to_owned();
        let mut side = CephSide {
            notes: vec![note.clone()],
            ..CephSide::default()
        };
        assert_eq!(ceph(&side), [("not known", note.clone())]);
        assert_eq!(cluster(&side), format!("Cluster: not known: {note}."));
        side.health = "HEALTH_OK".to_owned();
        side.activity.looks = 1;
        assert_eq!(ceph(&side)[0].1, "HEALTH_OK, 0 of 0 OSDs up, 0 in");
    }
}
