//! Results of runs, their comparison, and fio's output formats. Pure and portable: no system calls,
//! except that fio's formats read the local time zone.

pub mod bottleneck;
pub mod cache_state;
pub mod ceph;
pub mod ceph_hardware;
pub mod compare;
pub mod data_service;
pub mod device_class;
pub mod device_requests;
mod disk_util;
pub mod doctor;
pub mod document;
pub mod error_text;
// The tests of `statistics` use this file, too.
#[cfg(test)]
#[path = "../../statistics/src/series_statistics/families.rs"]
mod families;
pub mod fio;
pub mod host;
pub mod interval;
mod known_cause;
pub mod littles_law;
pub mod machine;
pub mod merged_runs;
pub mod neighbour_rate;
pub mod network;
pub mod nfs;
mod node_result;
pub mod node_storage;
pub mod nodes;
pub mod observer;
mod pod_result;
mod pod_totals;
pub mod pods;
pub mod property_values;
pub mod run;
pub mod run_error;
pub mod run_facts;
#[cfg(test)]
mod sample_run;
pub mod session;
pub mod shared_file;
mod shared_file_fault;
pub mod spill_list;
pub mod storage;
pub mod stored_latencies;
pub mod time_window;
mod verdict;
pub mod verdict_cause;
pub mod volume_lifecycle;
pub mod wire;
pub mod words;
mod worker_result;
mod worker_sums;

pub use iosonde_statistics::{histogram, series_statistics, stats};
