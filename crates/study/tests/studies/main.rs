//! Tests of all studies, on simulated devices, linked once.

mod cache_on_sim;
mod changed_target_on_sim;
mod committed_schemas;
mod common;
mod interval_coverage;
mod load_coverage;
mod load_on_sim;
mod probe_on_sim;
mod promised_times;
mod pts_on_sim;
mod recorded_plans;
mod suite_steps_on_sim;
mod sweep_against_grid;
mod sweep_on_sim;
