//! Pools and images of Ceph, in user space, through librados and librbd.
//!
//! [`CephStorage`] gives a session of the engine access to them. Both libraries are loaded when
//! they are first used.

mod access;
mod cache_tier;
mod ceph_side_builder;
mod clients;
mod cluster_sampler;
mod drain_deadline;
mod error;
mod fill;
mod image_facts;
mod image_name;
mod image_ranges;
mod image_users;
mod job_options;
mod leftover_pools;
mod made_image;
mod made_pool;
mod object_names;
mod open_handles;
mod osd_caches;
mod osd_hardware;
mod pool_facts;
mod pool_files;
mod pool_layout;
mod pool_owner;
mod pools_of_run;
mod rados_backend;
mod ranges;
mod rbd_backend;
mod resources;
mod stoppable_connect;
mod storage;
mod sys;
mod target_info;
mod uri;
mod used_client;

pub use cache_tier::{CacheTier, ChangedCacheMode};
pub use ceph_side_builder::ClusterDisturbance;
pub use clients::share_client;
pub use cluster_sampler::cluster_disturbance;
pub use error::{CephAction, CephError};
pub use image_facts::{ImageFacts, read_image_facts};
pub use image_name::ImageName;
pub use leftover_pools::{LeftoverPools, remove_leftover_pools, remove_made_pool};
pub use made_image::{list_images, make_image, remove_image};
pub use made_pool::{MadePool, NewPool, PoolKind};
pub use osd_caches::drop_osd_caches;
pub use pool_files::{Removal, remove_objects};
pub use pool_layout::PoolLayout;
pub use stoppable_connect::stop_connects_on;
pub use storage::CephStorage;
pub use sys::io_ctx::{IoCtx, ObjectStat};
pub use sys::rados::RadosCluster;
pub use target_info::{CephTargetInfo, inspect_target};
pub use uri::{pool_file_uri, relocate_to_ceph};
