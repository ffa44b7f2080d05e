//! The same jobs by Debian's fio and by iosonde, and what both say held against targets whose right answer is known.
//!
//! With `IOSONDE_E2E_PEER=fio` fio takes iosonde's place, which shows whether a failure is the test's own.

mod agent;
mod cleanup;
mod clients;
mod confined;
mod corners;
mod counts;
mod dialect;
mod draws;
mod examples;
mod faults;
mod generated;
mod interrupt;
mod json;
mod logs;
mod page_cache;
mod patterns;
mod published;
mod ramp;
mod rate_latency;
mod replay;
mod safety;
mod steady;
mod stopped;
mod syscalls;
mod targets;
mod text;
mod thinktime;
mod truth;
mod verify;
