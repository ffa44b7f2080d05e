//! iosonde on a Ceph cluster, started by `tests/ceph/run.sh`. Tests that break a cluster start one.

mod article_suite;
mod bench;
mod bounds;
mod ceph_targets;
mod cold_caches;
mod depth;
mod discarded;
mod engines;
mod fixture;
mod killed;
mod made_storage;
mod mounted;
mod outages;
mod peers;
mod rbd_bench;
mod refusals;
mod rights;
mod settings;
mod sides;
mod stalls;
mod tiers;
mod verdicts;
