//! Results of measurements: histograms, statistics, results of runs, and fio's output formats. Pure
//! and portable: no system calls, except that fio's formats read the local time zone.

pub mod bottleneck;
pub mod ceph;
pub mod compare;
pub mod device_class;
pub mod doctor;
pub mod document;
pub mod fio;
pub mod histogram;
pub mod host;
pub mod interval;
pub mod littles_law;
pub mod machine;
pub mod nfs;
pub mod nodes;
pub mod observer;
pub mod pods;
pub mod run;
pub mod series;
pub mod session;
pub mod spill_list;
pub mod stats;
pub mod storage;
pub mod wire;
pub mod words;
