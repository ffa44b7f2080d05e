//! Tests of whole workers.

mod allocations;
mod call_sizes;
mod completing_backend;
mod full_round_counts;
mod large_trims;
mod lost_completions;
mod lost_writes;
mod ring_features;
mod single_io_rows;
mod worker_parts;
