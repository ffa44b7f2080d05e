//! [`SearchTuning`]: the thresholds and times of the knee search.

use crate::figures::series::SAMPLE_S;

/// Thresholds and times of the knee search. Shares and ratios have no unit, times are in
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SearchTuning {
    /// Relative error at which the first run of a cell ends.
    pub(super) look_relative_error: f64,
    /// Largest share of the budget for the first run of a cell.
    pub(super) look_budget_share: f64,
    /// Smallest ratio of rates that counts as a rise with the depth.
    pub(super) rise_ratio: f64,
    /// A rise is linear if the rate grows by at least this share of the growth of the depth.
    pub(super) linear_growth_share: f64,
    /// Smallest ratio of rates that justifies more jobs.
    pub(super) jobs_rise_ratio: f64,
    /// Relative difference to the maximum that is negligible.
    pub(super) negligible_difference: f64,
    /// Largest share of the budget for one look at the deepest cell.
    pub(super) deepest_budget_share: f64,
    /// Measured time from which samples are too many to agree by chance.
    pub(super) many_samples_ns: u64,
    /// Share of the budget reserved for the knee while the maximum is measured.
    pub(super) knee_budget_share: f64,
    /// Ratio of neighbouring depths above which depths between them are tried.
    pub(super) depth_ratio_max: f64,
    /// Share of the budget that is planned, as no run ends exactly on time.
    pub(super) planned_budget_share: f64,
    /// Time to drain a run's last I/Os, in multiples of the mean latency.
    pub(super) drain_latencies: f64,
    /// Ramps and measured times are whole samples. A throttle releases I/Os in bursts, the kernel's
    /// ten times a second. A cut between two bursts would count the time of a burst without its
    /// I/Os.
    pub(super) sample_ns: f64,
    /// Ramp in queue turnovers: I/Os that start together return in waves until they spread out
    /// evenly.
    pub(super) ramp_turnovers: f64,
    /// Ramp of a short search, in queue turnovers.
    pub(super) short_ramp_turnovers: f64,
    /// Budget from which a search has time for long runs.
    pub(super) long_budget_ns: u64,
    /// Smallest ramp of a long run, as a share of it: imbalance between the members of an array
    /// builds up slowly.
    pub(super) long_ramp_share: f64,
    /// Length of a run relative to its ramp, so that the rest of the waves matters little.
    pub(super) run_ramps: f64,
    /// Length of a run relative to the time measured before in its cell. The start of a run is not
    /// typical: a throttle grants more I/O after idle time. Many short runs would consist of
    /// starts.
    pub(super) run_growth: f64,
    /// A cell may be measured for this many minimum times, even in a grid of shorter cells.
    pub(super) cell_looks_min: f64,
    /// Longest ramp of a run.
    pub(super) ramp_ns_max: f64,
    /// Assumed latency of an I/O before the first measurement.
    pub(super) unknown_latency_ns: f64,
}

impl SearchTuning {
    /// The values of all searches.
    pub(super) const DEFAULT: SearchTuning = SearchTuning {
        look_relative_error: 0.02,
        look_budget_share: 0.04,
        rise_ratio: 1.02,
        linear_growth_share: 0.85,
        jobs_rise_ratio: 1.03,
        negligible_difference: 0.01,
        deepest_budget_share: 0.15,
        many_samples_ns: 2_000_000_000,
        knee_budget_share: 0.1,
        depth_ratio_max: 1.5,
        planned_budget_share: 0.98,
        drain_latencies: 2.0,
        sample_ns: SAMPLE_S * 1e9,
        ramp_turnovers: 4.0,
        short_ramp_turnovers: 2.0,
        long_budget_ns: 30_000_000_000,
        long_ramp_share: 0.05,
        run_ramps: 3.0,
        run_growth: 1.0,
        cell_looks_min: 4.0,
        ramp_ns_max: 3e9,
        unknown_latency_ns: 10e6,
    };
}
