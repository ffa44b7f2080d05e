//! A seeded model of a storage device under a simulated clock.
//!
//! The model lets tests of the layers above be exact: statistics are compared with known
//! distributions, searches with known knees, and reports with fixed results. The model does no I/O
//! and takes no real time. The same spec and the same requests at the same times give the same
//! completions on every machine.
//!
//! # The model
//!
//! An I/O passes through these stages in order. All but the servers are optional.
//!
//! * **Faults** ([`spec::Faults`]) determine whether the I/O fails and how many bytes it moves. A
//!   failing I/O takes as long as a successful one.
//! * **Cache** ([`spec::CacheSpec`]): an LRU cache of blocks. It serves a read if it holds all its
//!   blocks. Otherwise the device reads the whole range, and the cache holds the blocks from then
//!   on. It accepts writes while it has room for dirty bytes. Writeback runs at a constant rate and
//!   does not slow the device's other work.
//! * **Members and servers** ([`spec::ServerLayout`]): the range is divided into stripes, which
//!   lie on members. Each member has one FIFO queue and one or more servers. A server is busy for
//!   the drawn service time ([`ServiceTime`]), the transfer time and, on a device with a head, the
//!   positioning time ([`spec::Positioning`]). The I/O is served when all its parts and copies are
//!   served. **Stalls** ([`spec::DeviceStalls`]) delay the start of service.
//! * **Link**: carries one I/O at a time in order of arrival. **Delay**: a latency without a queue.
//! * **Caps** ([`spec::RateCaps`]) and **locks** give the earliest completion time of the I/O. They
//!   count from its arrival and run in parallel with its service. They therefore limit the rate
//!   exactly and add no latency below that rate.
//!
//! Noise and drift ([`spec::Speed`]) scale the speed of servers, link, caps and writeback by one
//! factor. The factor is sampled when a service begins, or when an I/O arrives at a link or cap.
//! The device keeps contents on request ([`spec::StoreFaults`]).
//!
//! `docs/sim.md` lists the keys of the text that describes a device.

mod cache;
mod codec;
mod counters;
mod device;
pub mod drawn;
mod faults;
mod files;
pub mod keys;
mod noise;
mod parse;
pub mod presets;
mod request;
mod service_time;
pub mod spec;
mod store;
mod token_bucket;
mod units;
mod wear;

#[cfg(test)]
mod tests;

pub use counters::SimCounters;
pub use device::SimDevice;
pub use files::SimFile;
pub use parse::SimSpecError;
pub use request::{Reply, SimRequest};
pub use service_time::{ServiceTime, ServiceTimeShape};
pub use spec::SimSpec;
pub use store::PAGE_BYTES;
pub use token_bucket::TokenBucket;
pub use wear::Wear;
