use super::*;
use iosonde_result::ceph::CephActivity;
use serde_json::json;

/// Answer of Ceph 16 to `status` while an OSD was drained, shortened.
fn status() -> Value {
    json!({
        "fsid": "93631495-6e27-4797-ac38-2381ab1dbe04",
        "health": {
            "status": "HEALTH_WARN",
            "checks": {
                "PG_DEGRADED": {
                    "severity": "HEALTH_WARN",
                    "summary": {
                        "message": "Degraded data redundancy: \
                                    41/246 objects degraded (16.667%), 9 pgs degraded",
                        "count": 50
                    },
                    "muted": false
                }
            },
            "mutes": []
        },
        "osdmap": {
            "epoch": 17, "num_osds": 3, "num_up_osds": 3, "osd_up_since": 1_795_275_405,
            "num_in_osds": 2, "num_remapped_pgs": 5
        },
        "pgmap": {
            "pgs_by_state": [
                {"state_name": "active+clean", "count": 24},
                {"state_name": "active+recovery_wait+degraded", "count": 8},
                {"state_name": "active+recovering+degraded", "count": 1}
            ],
            "num_pgs": 33, "num_objects": 123, "data_bytes": 515_899_392_u64,
            "degraded_objects": 41, "degraded_total": 246, "degraded_ratio": 0.166,
            "misplaced_objects": 12, "misplaced_total": 246,
            "recovering_objects_per_sec": 13, "recovering_bytes_per_sec": 54_525_952,
            "recovering_keys_per_sec": 0
        }
    })
}

fn quiet() -> Value {
    json!({
        "fsid": "93631495-6e27-4797-ac38-2381ab1dbe04",
        "health": {"status": "HEALTH_OK", "checks": {}},
        "osdmap": {"osdmap": {"num_osds": 3, "num_up_osds": 3, "num_in_osds": 3}},
        "pgmap": {"pgs_by_state": [{"state_name": "active+clean", "count": 33}], "num_pgs": 33}
    })
}

#[test]
fn ceph_side_keeps_the_worst_status() {
    let mut side = CephSide::default();
    ClusterStatus::parse(&quiet()).add_to(&mut side);
    assert_eq!(
        (side.health.as_str(), side.osds.up, side.osds.r#in),
        ("HEALTH_OK", 3, 3)
    );
    assert_eq!(side.pgs, 33);
    ClusterStatus::parse(&status()).add_to(&mut side);
    ClusterStatus::parse(&quiet()).add_to(&mut side);
    assert_eq!(side.health, "HEALTH_WARN");
    assert_eq!(side.checks.len(), 1);
    assert_eq!(side.checks[0].name, "PG_DEGRADED");
    let message = side.checks[0].message.as_deref().unwrap();
    assert!(message.starts_with("Degraded data redundancy: 41/246"));
    let seen = CephActivity {
        looks: 3,
        recovering: 1,
        recovery_bytes_per_s: 54_525_952,
        degraded_objects: 41,
        misplaced_objects: 12,
        ..CephActivity::default()
    };
    assert_eq!(side.activity, seen);
}

#[test]
fn recovery_without_moved_bytes_is_waiting() {
    let mut stuck = status();
    for what in ["bytes", "objects"] {
        stuck["pgmap"][format!("recovering_{what}_per_sec")] = json!(0);
    }
    let parsed = ClusterStatus::parse(&stuck);
    assert_eq!(parsed.disturbance(), None);
    let mut side = CephSide::default();
    parsed.add_to(&mut side);
    let activity = &side.activity;
    assert_eq!((activity.recovering, activity.recovery_waiting), (0, 1));
    assert!(side.marks().is_empty(), "nothing moved");
    assert_eq!(
        side.activity.waiting_text().as_deref(),
        Some(
            "due, but moved no data in 1 of 1 samples, and up to 41 copies of objects were \
             missing, and up to 12 copies of objects were misplaced"
        )
    );
    let moving = ClusterStatus::parse(&status());
    assert_eq!(moving.disturbance(), Some(ClusterDisturbance::Recovery));
    stuck["health"]["status"] = json!("HEALTH_ERR");
    let broken = ClusterStatus::parse(&stuck);
    assert_eq!(broken.disturbance(), Some(ClusterDisturbance::HealthError));
    assert_eq!(ClusterStatus::parse(&quiet()).disturbance(), None);
}

#[test]
fn recovering_pools_are_those_with_rates() {
    let pools = json!([
        {"pool_name": "a", "pool_id": 1, "recovery": {"degraded_objects": 3}, "recovery_rate": {}},
        {"pool_name": "b", "pool_id": 2, "recovery_rate": {
            "recovering_objects_per_sec": 2, "recovering_bytes_per_sec": 8192,
            "recovering_keys_per_sec": 0, "num_objects_recovered": 10
        }}
    ]);
    assert_eq!(recovering_pools(&pools), ["b"]);
    assert!(recovering_pools(&Value::Null).is_empty());
}

#[test]
fn scrubs_are_counted_by_pg_state() {
    let mut status = quiet();
    status["pgmap"]["pgs_by_state"][0]["state_name"] = json!("active+clean+scrubbing+deep");
    let mut side = CephSide::default();
    ClusterStatus::parse(&status).add_to(&mut side);
    assert_eq!((side.activity.scrubbing, side.activity.recovering), (1, 0));
    // An unexpected answer is not an error.
    ClusterStatus::parse(&Value::Null).add_to(&mut side);
    assert_eq!(side.activity.looks, 2);
    assert_eq!(side.health, "HEALTH_OK");
}

fn pools() -> Value {
    json!([
        {"pool_id": 1, "pool_name": "testbench", "type": 1, "size": 2, "min_size": 1, "pg_num": 32,
         "erasure_code_profile": "", "read_tier": 4, "write_tier": 4, "cache_mode": "none"},
        {"pool_id": 3, "pool_name": "ecpool", "type": 3, "size": 3, "min_size": 2, "pg_num": 8,
         "erasure_code_profile": "k2m1", "read_tier": -1, "write_tier": -1, "cache_mode": "none"},
        {"pool_id": 4, "pool_name": "hot", "type": 1, "size": 1, "min_size": 1, "pg_num": 8,
         "erasure_code_profile": "", "read_tier": -1, "write_tier": -1, "cache_mode": "writeback"}
    ])
}

#[test]
fn pools_keep_copies_or_an_erasure_code() {
    let profile = |name: &str| {
        assert_eq!(name, "k2m1");
        Some(json!({"k": "2", "m": "1", "plugin": "jerasure"}))
    };
    let copies = ceph_pool(&pools(), "testbench", profile).unwrap();
    assert_eq!(copies.redundancy.to_string(), "size 2 (at least 1)");
    assert_eq!(
        (copies.pgs, copies.cache_tier.as_deref()),
        (32, Some("hot (writeback)"))
    );
    let coded = ceph_pool(&pools(), "ecpool", profile).unwrap();
    assert_eq!(coded.redundancy.to_string(), "erasure code 2+1");
    let unknown = ceph_pool(&pools(), "ecpool", |_| None).unwrap();
    assert_eq!(unknown.redundancy.to_string(), "erasure code (k2m1)");
    assert_eq!(ceph_pool(&pools(), "none", profile), None);
}

#[test]
fn osd_latencies_cover_operations_of_the_run() {
    let perf = osd_latencies(&json!({"pg_ready": true, "osdstats": {"osd_perf_infos": [
        {"id": 2, "perf_stats": {
            "commit_latency_ms": 7, "apply_latency_ms": 6,
            "commit_latency_ns": 7_000_000, "apply_latency_ns": 6_500_000
        }},
        {"id": 0, "perf_stats": {"commit_latency_ms": 3, "apply_latency_ms": 3}}
    ]}}));
    assert_eq!(perf[&2], (7_000_000, 6_500_000));
    assert_eq!(perf[&0], (3_000_000, 3_000_000));
    let ops = |count: u64, seconds: f64| {
        let dump =
            json!({"osd": {"op_latency": {"avgcount": count, "sum": seconds, "avgtime": 0.0}}});
        osd_operations(&dump).unwrap()
    };
    let before = BTreeMap::from([(0, ops(100, 1.0)), (1, ops(50, 9.0))]);
    let after = BTreeMap::from([(0, ops(300, 1.2)), (1, ops(10, 0.5)), (2, ops(0, 0.0))]);
    let found = latencies(&before, &after, &perf);
    let shown: Vec<_> = found.iter().map(|osd| (osd.osd, osd.ops)).collect();
    // osd.1 was restarted: its operations since then may not belong to the run.
    assert_eq!(shown, [(0, 200), (2, 0), (1, 0)]);
    assert!((found[0].op_ns - 1e6).abs() < 1.0);
    assert_eq!(found[0].commit_ns, Some(3_000_000));
}

#[test]
fn data_pool_of_a_file_system_is_found() {
    let one = |name: &str, pool: &str| {
        json!({
            "name": name, "metadata_pool": "m", "metadata_pool_id": 2,
            "data_pool_ids": [3], "data_pools": [pool, "other"]
        })
    };
    let two = json!([one("a", "pa"), one("b", "pb")]);
    assert_eq!(data_pool(&two, Some("b")).as_deref(), Some("pb"));
    assert_eq!(data_pool(&two, Some("c")), None);
    assert_eq!(data_pool(&two, None), None, "which of them is not known");
    let only = json!([one("a", "pa")]);
    assert_eq!(data_pool(&only, None).as_deref(), Some("pa"));
    assert_eq!(data_pool(&json!({}), None), None);
}

#[test]
fn release_has_number_and_name() {
    let release = |text: &str| release(&serde_json::json!({ "version": text }));
    let text = "ceph version 18.2.4 (e7ad5345525c7aa95470c26863873b581076945d) reef (stable)";
    assert_eq!(release(text).as_deref(), Some("18.2.4 reef"));
    assert_eq!(release("ceph version 0.94").as_deref(), Some("0.94"));
    assert_eq!(release("18.2.4"), None);
}
