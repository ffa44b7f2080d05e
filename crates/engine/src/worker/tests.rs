//! Tests of whole workers.

mod allocations;
mod lost_completions;
mod single_io_rows;
mod worker_parts;
