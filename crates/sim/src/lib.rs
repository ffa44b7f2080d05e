//! A seeded model of a device under a simulated clock.
//!
//! It exists so that everything above it can be tested exactly: statistics against known truths, searches against known
//! knees, reports against results that never change. No I/O is done and no time passes. The same spec and the same
//! requests at the same times give the same completions on every machine.
//!
//! # The model
//!
//! An I/O takes this way; every station is optional but the servers.
//!
//! 1. **Faults** ([`spec::Faults`]) decide whether it fails and how much it moves. A failing I/O takes its time like others.
//! 2. **Cache** ([`spec::CacheSpec`]): least recently used blocks. A read whose blocks are all there is served from it; else
//!    the device is asked for the whole read, and its blocks are there from then on. Writes are taken up as long as there is
//!    room for dirty bytes, which drain at a steady rate beside the device's other work.
//! 3. **Members and servers** ([`spec::Layout`]): the range is cut into stripes that lie on members; each member has one
//!    queue, first come, first served, and some servers. A server takes the drawn service time ([`Service`]), the time of
//!    its transfer, and, with a head, that of positioning ([`spec::Positioning`]). The I/O is served when all its parts and
//!    copies are. **Stalls** ([`spec::Stalls`]) keep services from beginning.
//! 4. **Link**: carries one I/O at a time in the order of arrival. **Delay**: a time that nobody waits in line for.
//! 5. **Caps** ([`spec::Caps`]) and **locks** say from which time on the I/O may be done. They count from its arrival and
//!    run beside its service, so they bound the rate exactly and add no latency below it.
//!
//! Noise and drift ([`spec::Speed`]) speed up or slow down the servers, link, caps and writing back by one factor, which is
//! taken when a service begins, or when an I/O arrives at a link or cap. Contents are kept on demand ([`spec::StoreFaults`]).
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
mod service_time;
pub mod spec;
mod store;
mod token_bucket;
mod units;
mod wear;

#[cfg(test)]
mod tests;

pub use counters::SimCounters;
pub use device::{Reply, Request, SimDevice};
pub use files::SimFile;
pub use parse::SimSpecError;
pub use service_time::{Service, Shape};
pub use spec::SimSpec;
pub use store::PAGE_BYTES;
pub use token_bucket::TokenBucket;
pub use wear::Wear;
