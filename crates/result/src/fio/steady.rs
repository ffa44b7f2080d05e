//! `steadystate` in fio's terms.

use crate::run::SteadyStateResult;
use iosonde_job::plan::{SteadyMetric, SteadyState};

/// Returns the metric: `iops` or `bw`.
pub(super) fn metric(asked: &SteadyState) -> &'static str {
    match asked.metric {
        SteadyMetric::Iops => "iops",
        SteadyMetric::Bandwidth => "bw",
    }
}

/// Returns `%` if the limit is relative.
pub(super) fn percent_sign(asked: &SteadyState) -> &'static str {
    if asked.percent { "%" } else { "" }
}

/// Returns the option as fio repeats it: `iops_slope:0.300000%`, bandwidth in bytes per second.
pub(super) fn option(asked: &SteadyState) -> String {
    format!(
        "{}{}:{:.6}{}",
        metric(asked),
        if asked.slope { "_slope" } else { "" },
        asked.limit,
        percent_sign(asked)
    )
}

/// Returns bytes and I/Os per second, by sample. As in fio, zeros pad a window that was not full.
pub(super) fn window(asked: &SteadyState, result: &SteadyStateResult) -> (Vec<u64>, Vec<u64>) {
    let padded = |values: &[u64]| {
        let mut values = values.to_vec();
        values.resize(values.len().max(asked.samples()), 0);
        values
    };
    (padded(&result.bw_bytes), padded(&result.iops))
}

/// Returns the means of bytes and I/Os per second over the window, padding included.
pub(super) fn means(asked: &SteadyState, result: &SteadyStateResult) -> (u64, u64) {
    let (bytes, iops) = window(asked, result);
    (mean_value(&bytes), mean_value(&iops))
}

fn mean_value(values: &[u64]) -> u64 {
    match values.len() as u64 {
        0 => 0,
        count => values.iter().sum::<u64>() / count,
    }
}
