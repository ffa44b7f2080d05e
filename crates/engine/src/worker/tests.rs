//! Tests of whole workers.

mod allocations;
mod call_sizes;
mod large_trims;
mod lost_completions;
mod single_io_rows;
mod worker_parts;
