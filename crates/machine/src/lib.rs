//! Facts about this Linux machine: the identity of a target, whether it may be written, and the
//! activity of devices and processors.
//!
//! * [`identify`] finds the mount and the block devices of a path. [`host`] and [`cloud`] describe
//!   the machine.
//! * [`file_service`] names the servers of a mounted file system. [`nfs_stats`] reads the counters
//!   of the NFS client.
//! * [`write_obstacles`] decides whether a device may be written. It uses [`signature`] and
//!   [`consent`]; [`disk_identity`] ties consent to a disk. [`write_hold`] claims the device during
//!   a run. [`space`] checks that data fits.
//! * [`diskstats`] reads the counters of block devices, which [`disk_util`] and [`sar`] turn into
//!   figures. [`cache`] and [`extents`] tell whether I/O reached the devices.
//! * [`mapped_images`] lists the images of Ceph that the kernel maps, with their mounts.
//! * [`node_storage`] lists the disks and mounts of a node of a cluster.
//! * [`net_counters`] reads the counters of network interfaces, TCP and storage connections.
//! * [`device_watch`] samples devices live. [`machine_snapshot`] holds all samples of a run:
//!   devices, [`processors`], [`psi`] (pressure stall information), [`clocks`].
//! * [`conditions`], [`activity`] and [`access`] collect the facts for `iosonde doctor`, and
//!   `io_path` those of fast devices.
//! * [`atomic_writes`] reads the limits of atomic writes of a file or device.
//! * [`system_env`] answers queries of job files. [`bounded_read`] reads external files with a size
//!   limit. [`spill_file`] is the temporary file of long runs. [`drop_caches`] empties the caches
//!   of the kernel.
//!
//! A call on a path waits for its file system. Linux has no deadline for such calls: an unreachable
//! server of a hard NFS mount blocks them until it returns.
//!
//! All of `/proc` and `/sys` is read through a [`System`](proc_root::System) and parsed by pure
//! functions, so that tests can use captured machines.

pub mod access;
pub mod activity;
pub mod atomic_writes;
pub mod block_device;
pub mod bounded_read;
pub mod cache;
#[cfg(test)]
mod captured_machine;
pub mod cgroup;
pub mod clocks;
pub mod cloud;
pub mod conditions;
pub mod consent;
pub mod cpu_use;
pub mod device_watch;
mod disk_controller;
pub mod disk_identity;
pub mod disk_util;
pub mod diskstats;
pub mod drop_caches;
pub mod extents;
pub mod file_service;
mod file_system;
pub mod host;
pub mod identify;
mod io_path;
pub mod machine_snapshot;
pub mod mapped_images;
pub mod mounts;
pub mod net_counters;
pub mod nfs_stats;
pub mod node_storage;
pub mod proc_root;
pub mod processors;
pub mod psi;
pub mod sar;
pub mod shared_file;
pub mod signature;
pub mod space;
pub mod spill_file;
mod storage_sockets;
mod sys;
pub mod system_env;
pub mod write_hold;
pub mod write_obstacles;
