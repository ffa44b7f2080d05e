//! This Linux machine: what a target is, whether it may be written, what its devices and processors do.
//!
//! * [`identify`]: from a path to its mount and block devices; [`host`] and [`cloud`]: the machine
//! * [`file_service`]: who serves a mounted file system; [`nfs_stats`]: what was asked of NFS servers
//! * [`write_obstacles`]: whether a device may be written, which [`signature`] helps to decide, and
//!   [`consent`] to the disk that [`disk_identity`] knows; [`write_hold`] keeps it during a run;
//!   [`space`]: whether data fits
//! * [`diskstats`]: what devices did, as [`disk_util`] and [`sar`] show it; [`cache`] and [`extents`]:
//!   whether I/O reached them
//! * [`device_watch`]: what devices do now; [`machine_snapshot`]: all that is sampled during a run:
//!   devices, [`processors`], [`psi`] (pressure stall information), [`clocks`]
//! * [`conditions`], [`activity`] and [`access`]: what would distort a measurement, for `iosonde doctor`
//! * [`system_env`]: the machine as job files ask for it; [`bounded_read`] and [`spill_file`]: files of
//!   foreign text, and the temporary file of long runs
//!
//! Everything from `/proc` and `/sys` is read through a [`System`](proc_root::System) and parsed by pure
//! functions, so that tests run over captured machines.

pub mod access;
pub mod activity;
pub mod block_device;
pub mod bounded_read;
pub mod cache;
pub mod cgroup;
pub mod clocks;
pub mod cloud;
pub mod conditions;
pub mod consent;
pub mod cpu_use;
pub mod device_watch;
pub mod disk_identity;
pub mod disk_util;
pub mod diskstats;
pub mod extents;
pub mod file_service;
pub mod host;
pub mod identify;
pub mod machine_snapshot;
pub mod mounts;
pub mod nfs_stats;
pub mod proc_root;
pub mod processors;
pub mod psi;
pub mod sar;
pub mod signature;
pub mod space;
pub mod spill_file;
mod sys;
pub mod system_env;
pub mod write_hold;
pub mod write_obstacles;
