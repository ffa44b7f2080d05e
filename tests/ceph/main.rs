//! iosonde on a real Ceph cluster. `tests/ceph/run.sh` starts one for all tests; those that break a cluster have their own.

mod bench;
mod depth;
mod engines;
mod fixture;
mod mounted;
mod outages;
mod peers;
mod refusals;
mod rights;
mod stalls;
mod suite;
mod targets;
mod tiers;
mod verdicts;
