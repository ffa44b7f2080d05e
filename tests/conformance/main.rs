//! The same jobs with Debian's fio and with iosonde, also on targets of known behaviour.
//!
//! With `IOSONDE_E2E_PEER=fio` fio is tested against itself, which shows faults of the tests.

mod agent;
mod cleanup;
mod clients;
mod confined;
mod corners;
mod counts;
mod dialect;
mod draws;
mod examples;
mod generated;
mod interrupt;
mod io_errors;
mod json;
mod latency_targets;
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
mod text;
mod thinktime;
mod truth;
mod verify;
