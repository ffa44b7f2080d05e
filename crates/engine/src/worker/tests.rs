//! Tests of whole workers.

mod allocations;
mod lost_completions;
mod worker_parts;
