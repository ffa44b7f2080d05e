//! Statistics of measurements: the latency histogram, moments that can be merged, confidence
//! intervals and steady state of time series.
//!
//! A crate of its own, so that unit tests of the other crates use it optimised.

pub mod histogram;
pub mod series_statistics;
pub mod stats;
