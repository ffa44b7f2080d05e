//! iosonde on a real Ceph cluster. `tests/ceph/run.sh` starts one for all tests; those that break a cluster have their own.

mod bench;
mod depth;
mod discarded;
mod engines;
mod fixture;
mod killed;
mod mounted;
mod outages;
mod peers;
mod refusals;
mod rights;
mod settings;
mod sides;
mod stalls;
mod suite;
mod targets;
mod tiers;
mod verdicts;
