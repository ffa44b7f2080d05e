//! Hooks around the runs of studies.

pub(crate) mod fio_export_hook;
mod quiet_cluster_wait;
pub(crate) mod quiet_device_hook;
mod quiet_waits;
