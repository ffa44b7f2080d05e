//! The target's device: what it is, whether it may be written, and what it did.
//!
//! * [`identify`]: from a path to its mount and block devices; [`host`] and [`cloud`]: the machine
//! * [`service`]: who serves a mounted file system; [`mountstats`]: what was asked of NFS servers meanwhile
//! * [`guard`]: whether a device may be written, which [`signature`] helps to decide, and [`consent`] to the disk that
//!   [`disk_identity`] knows, and [`write_hold`], which keeps it meanwhile; [`space`]: whether data fits
//! * [`diskstats`]: what devices did meanwhile, as [`disk_util`] and [`sar`] show it; [`cache`] and [`extents`]:
//!   whether I/O reached them
//! * [`watching`]: what devices do now; [`machine`]: readings of all that is sampled during a run: devices, [`processors`],
//!   [`pressure`], [`clocks`]
//! * [`conditions`], [`activity`] and [`access`]: what would spoil a measurement, for `iosonde doctor`
//!
//! All that is read from `/proc` and `/sys` is read through a [`System`](system::System), and parsed by pure
//! functions, so that tests run over captured machines.

pub mod access;
pub mod activity;
pub mod blockdev;
pub mod cache;
pub mod cgroup;
pub mod clocks;
pub mod cloud;
pub mod conditions;
pub mod consent;
pub mod disk_identity;
pub mod disk_util;
pub mod diskstats;
pub mod extents;
pub mod guard;
pub mod host;
pub mod identify;
pub mod machine;
pub mod mounts;
pub mod mountstats;
pub mod pressure;
pub mod processors;
pub mod sar;
pub mod service;
pub mod signature;
pub mod space;
pub mod system;
pub mod watching;
pub mod write_hold;
