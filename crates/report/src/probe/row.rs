//! Texts about one figure.

use crate::intervals::{NOT_KNOWN, SHARE_MIN, error_share};
use crate::known_digits::{
    BANDWIDTH_UNITS, RATE_UNITS, UnitLadder, bandwidth_of_rate, digits_beside_interval,
    known_percentile,
};
use iosonde_job::plan::Direction;
use iosonde_study::probe::{
    LatencySummary, PhaseFigure, PhaseRun, ProbePhase, ProbeResult, RateEstimate, most_of,
};
use iosonde_study::sweep::LARGE_BYTES;
use iosonde_study::words;
use std::collections::BTreeMap;

/// Order of the phases in reports: throughput first.
pub(crate) const ORDER: [ProbePhase; 7] = [
    ProbePhase::RandomRead,
    ProbePhase::RandomWrite,
    ProbePhase::SequentialRead,
    ProbePhase::SequentialWrite,
    ProbePhase::ReadLatency,
    ProbePhase::WriteLatency,
    ProbePhase::SyncedWrite,
];

/// Name of a figure: `4k random read, depth 64`.
pub fn label(figure: &PhaseFigure) -> String {
    pattern(figure.phase, figure.block_bytes, figure.iodepth)
}

/// Name of a phase that has not run yet, in the same form.
pub fn planned(phase: ProbePhase) -> String {
    pattern(phase, phase.block_bytes(), phase.iodepth())
}

/// Name of a phase that has not run yet, without its depth: `4k random read`.
pub fn planned_without_depth(phase: ProbePhase) -> String {
    pattern_without_depth(phase, phase.block_bytes(), "sequential")
}

/// Titles of a probe's parts by key: `random_read` is `4k random read, depth 64`.
pub(crate) fn titles(probe: &ProbeResult) -> BTreeMap<String, String> {
    let of_figures = probe
        .figures
        .iter()
        .map(|figure| (figure.phase.key().to_owned(), label(figure)));
    let phases = probe.knees.iter().map(|knee| knee.phase);
    let of_most = phases.filter_map(|phase| title_of_maximum(phase, "at any depth"));
    let mut titles: BTreeMap<String, String> = of_figures.chain(of_most).collect();
    titles.extend(short_run_titles(probe));
    titles
}

/// Titles of the maxima that longer runs of the probe did not keep up, by key.
fn short_run_titles(probe: &ProbeResult) -> BTreeMap<String, String> {
    let knees = probe.knees.iter();
    let short = knees.filter(|knee| probe.sustained_rate(knee).is_some());
    let titles = short.filter_map(|knee| title_of_maximum(knee.phase, "of short runs"));
    titles.collect()
}

/// Titles of the parts of compared probes: those of the first that has the part, if they do not
/// hide that a maximum of another is of short runs.
#[must_use]
pub fn titles_of_probes(probes: &[&ProbeResult]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for probe in probes.iter().rev() {
        all.extend(titles(probe));
    }
    for probe in probes {
        all.extend(short_run_titles(probe));
    }
    all
}

/// Titles of the parts of a probe whose own figures are not known: those of its usual phases.
#[must_use]
pub fn usual_titles() -> BTreeMap<String, String> {
    let of_figures = ORDER.map(|phase| (phase.key().to_owned(), planned(phase)));
    let of_most = ORDER.into_iter();
    let of_most = of_most.filter_map(|phase| title_of_maximum(phase, "at any depth"));
    of_figures.into_iter().chain(of_most).collect()
}

/// Title of a part of a probe's run, from its key and its depth. `None`: it is no phase.
pub(crate) fn title_of_part(key: &str, iodepth: u32) -> Option<String> {
    let phase = ORDER.into_iter().find(|phase| phase.key() == key)?;
    Some(pattern(phase, phase.block_bytes(), iodepth))
}

/// Title of a phase's run, from the depth of the run. `None`: the layout has none.
pub(crate) fn title_of_phase(phase: ProbePhase, iodepth: u32) -> Option<String> {
    (phase != ProbePhase::Layout).then(|| pattern(phase, phase.block_bytes(), iodepth))
}

/// Key and title of the maximum of a phase, which ends with its `conditions`. `None` if its depth
/// is not searched.
fn title_of_maximum(phase: ProbePhase, conditions: &str) -> Option<(String, String)> {
    if phase == ProbePhase::SyncedWrite {
        return None;
    }
    let pattern = planned_without_depth(phase);
    let title = format!("{pattern}, maximum {conditions}");
    Some((most_of(phase), title))
}

/// Name of a figure without its depth: `4k random read`, `1M seq. write`, `4k fdatasync`.
pub(super) fn short_label(figure: &PhaseFigure) -> String {
    short_name(figure.phase, figure.block_bytes)
}

/// Name of a workload without its depth, as [`short_label`].
pub(super) fn short_name(phase: ProbePhase, block_bytes: u64) -> String {
    pattern_without_depth(phase, block_bytes, "seq.")
}

/// Name of a workload in the form of [`label`].
pub(super) fn pattern(phase: ProbePhase, block_bytes: u64, iodepth: u32) -> String {
    let pattern = pattern_without_depth(phase, block_bytes, "sequential");
    match phase {
        ProbePhase::SyncedWrite => pattern,
        _ => format!("{pattern}, depth {iodepth}"),
    }
}

/// Name of a workload without its depth. `sequential` is the word for sequential I/O.
fn pattern_without_depth(phase: ProbePhase, block_bytes: u64, sequential: &str) -> String {
    let block = if block_bytes >= 1 << 20 {
        format!("{}M", block_bytes >> 20)
    } else {
        format!("{}k", block_bytes >> 10)
    };
    let direction = match phase.direction() {
        Direction::Read => "read",
        _ => "write",
    };
    let order = if phase.is_random() {
        "random"
    } else {
        sequential
    };
    match phase {
        ProbePhase::SyncedWrite => format!("{block} fdatasync"),
        _ => format!("{block} {order} {direction}"),
    }
}

/// Figures of a probe in the order of reports.
pub(crate) fn figures(result: &ProbeResult) -> impl Iterator<Item = &PhaseFigure> {
    let phases = ORDER.into_iter();
    phases.filter_map(move |phase| result.figure(phase))
}

/// Runs of a probe without the layout.
pub(super) fn measured_runs(result: &ProbeResult) -> impl Iterator<Item = &PhaseRun> {
    let runs = result.runs.iter();
    runs.filter(|run| run.phase != ProbePhase::Layout)
}

/// Cells of a figure: label, rate, interval, bandwidth, and the percentiles 50, 99 and 99.9.
pub(super) fn figure_cells(figure: &PhaseFigure) -> [String; 7] {
    let latency = latency(figure);
    let (iops, bytes) = (figure.iops, figure.bytes_per_s);
    let [p50, p99, p99_9] = intervals(figure);
    [
        label(figure),
        digits_beside_interval(iops.mean, iops.error, RATE_UNITS),
        error(figure),
        bandwidth_of_rate(bytes.mean, iops.mean, iops.error),
        known_percentile(latency.p50_ns, p50),
        known_percentile(latency.p99_ns, p99),
        known_percentile(latency.p99_9_ns, p99_9),
    ]
}

/// Main latency of a figure. If each write is followed by a sync, it is that of the sync.
pub fn latency(figure: &PhaseFigure) -> &LatencySummary {
    figure.sync_latency.as_ref().unwrap_or(&figure.latency)
}

/// Confidence intervals of the median, 99th and 99.9th percentile.
pub fn intervals(figure: &PhaseFigure) -> [Option<(u64, u64)>; 3] {
    let latency = latency(figure);
    [
        latency.p50_between_ns,
        latency.p99_between_ns,
        latency.p99_9_between_ns,
    ]
}

/// Confidence interval of the rate: `0.4 %`, `< 0.1 %`, or `-` if unknown.
pub fn error(figure: &PhaseFigure) -> String {
    let telling = figure.iops.if_telling();
    telling.relative_error().map_or("-".to_owned(), error_share)
}

/// Half-width of an interval as a share: `±0.4 %`, at least `±0.1 %`. `not known` if the interval
/// reaches zero. The sign is `plus_minus`.
pub fn within(error: f64, plus_minus: &str) -> String {
    match error {
        error if error < 1.0 => format!("{plus_minus}{}", error_share(error.max(SHARE_MIN))),
        _ => NOT_KNOWN.to_owned(),
    }
}

/// Reasons to doubt the figure: `uncertain: ±3.4 %`, `not steady`. `plus_minus` stands before half
/// an interval.
pub fn doubts(figure: &PhaseFigure, plus_minus: &str) -> Vec<String> {
    let mut doubts = Vec::new();
    if is_unsure(figure) {
        doubts.push(match figure.iops.if_telling().relative_error() {
            Some(error) => format!("uncertain: {}", within(error, plus_minus)),
            None => "uncertain: interval not known".to_owned(),
        });
    }
    if figure.settled == Some(false) {
        doubts.push("not steady".to_owned());
    }
    doubts
}

/// Whether the time ran out before the rate reached the requested confidence.
pub(crate) fn is_unsure(figure: &PhaseFigure) -> bool {
    figure.sure == Some(false)
}

/// Confidence interval of a percentile: `388-396 us`, `980 us-1.20 ms`, or `-` if unknown.
pub fn between(ns: Option<(u64, u64)>) -> String {
    match ns {
        Some((low, high)) => words::latency_range(low as f64, high as f64),
        None => "-".to_owned(),
    }
}

/// The rate that stands for a phase on all screens, with its units: the mean over the phase in
/// I/Os per second, or in bytes per second for large blocks.
pub(crate) fn main_rate(figure: &PhaseFigure) -> (RateEstimate, &'static UnitLadder) {
    match figure.block_bytes {
        LARGE_BYTES.. => (figure.bytes_per_s, BANDWIDTH_UNITS),
        _ => (figure.iops, RATE_UNITS),
    }
}

/// Converts a rate of a phase to its main unit. [`main_rate`] has the same unit.
pub(crate) fn in_main_unit(
    phase: ProbePhase,
    iops: RateEstimate,
) -> (RateEstimate, &'static UnitLadder) {
    match phase.block_bytes() {
        bytes @ LARGE_BYTES.. => {
            let bytes = bytes as f64;
            let rate = RateEstimate {
                mean: iops.mean * bytes,
                error: iops.error.map(|error| error * bytes),
                spread: iops.spread,
            };
            (rate, BANDWIDTH_UNITS)
        }
        _ => (iops, RATE_UNITS),
    }
}

/// Main rate of a phase with its known digits: IOPS, or the bandwidth of large blocks.
pub fn headline(figure: &PhaseFigure) -> String {
    known_rate(main_rate(figure))
}

fn known_rate((rate, units): (RateEstimate, &'static UnitLadder)) -> String {
    let text = digits_beside_interval(rate.mean, rate.error, units);
    // The names of other units start with a blank and name the quantity.
    match units[0].1.is_empty() {
        true => format!("{text} IOPS"),
        false => text,
    }
}

/// Describes the figure in one line, for the display. `plus_minus` stands before half an interval.
pub fn one_line(figure: &PhaseFigure, plus_minus: &str) -> String {
    let line = format!(
        "{:<28} {:<12} {}",
        label(figure),
        headline(figure),
        details(figure, plus_minus)
    );
    line.trim_end().to_owned()
}

/// Details of a figure: its interval, its latency, or the doubts about it.
pub fn details(figure: &PhaseFigure, plus_minus: &str) -> String {
    let mut details = doubts(figure, plus_minus);
    let error = figure.iops.if_telling().relative_error();
    if let Some(error) = error.filter(|_| !is_unsure(figure)) {
        details.insert(0, within(error, plus_minus));
    }
    let p99 = latency(figure).p99_ns.filter(|_| details.len() < 2);
    let interval = latency(figure).p99_between_ns;
    details.extend(p99.map(|ns| format!("p99 {}", known_percentile(Some(ns), interval))));
    details.join(", ")
}

/// Formats a rate with its known digits in the unit of its phase: IOPS, or the bandwidth of large
/// blocks.
pub fn phase_rate_text(phase: ProbePhase, iops: RateEstimate) -> String {
    known_rate(in_main_unit(phase, iops))
}

/// Cell of a search: `depth 32`, `2 jobs x depth 32`.
pub fn jobs_and_depth_text(jobs: u32, iodepth: u32) -> String {
    match jobs {
        1 => format!("depth {iodepth}"),
        jobs => format!("{jobs} jobs x depth {iodepth}"),
    }
}

/// Cells of a search from the shallowest to the deepest one: `depth 32`, `depths 16 to 32`,
/// `2 jobs x depths 16 to 32`.
pub(crate) fn cell_range(jobs: u32, from: u32, to: u32) -> String {
    match jobs {
        _ if from == to => jobs_and_depth_text(jobs, from),
        1 => format!("depths {from} to {to}"),
        jobs => format!("{jobs} jobs x depths {from} to {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::simulated::probed;
    use iosonde_study::probe::ProbeBudget;

    #[test]
    fn part_of_a_run_has_the_title_of_other_screens() {
        assert_eq!(
            title_of_part("random_read", 8).as_deref(),
            Some("4k random read, depth 8")
        );
        assert_eq!(title_of_part("job", 8), None);
    }

    #[test]
    fn run_of_a_phase_has_its_title_and_the_layout_none() {
        let title = title_of_phase(ProbePhase::RandomRead, 8);
        assert_eq!(title.as_deref(), Some("4k random read, depth 8"));
        assert_eq!(title_of_phase(ProbePhase::Layout, 8), None);
    }

    #[test]
    fn rate_of_a_phase_has_only_known_digits() {
        let iops = |mean, error| RateEstimate {
            mean,
            error,
            spread: None,
        };
        let small = |mean, error| phase_rate_text(ProbePhase::RandomRead, iops(mean, error));
        assert_eq!(small(93_410.0, Some(1_150.0)), "93.4k IOPS");
        assert_eq!(small(44_200.0, Some(38_000.0)), "44k IOPS");
        assert_eq!(small(3_100.0, None), "~3.1k IOPS");
        let large = phase_rate_text(ProbePhase::SequentialRead, iops(3_277.0, Some(2.0)));
        assert_eq!(large, "3.20 GiB/s");
    }

    #[test]
    fn share_of_an_interval_is_never_zero() {
        assert_eq!([0.0, 0.0004].map(error_share), ["< 0.1 %", "< 0.1 %"]);
        assert_eq!([0.0006, 0.074].map(error_share), ["0.1 %", "7.4 %"]);
        assert_eq!(within(0.0004, "±"), "±0.1 %");
        assert_eq!(within(0.074, "+-"), "+-7.4 %");
        assert_eq!(within(1.0, "±"), NOT_KNOWN);
    }

    #[test]
    fn details_have_the_sign_of_the_style() {
        let result = probed("nvme", ProbeBudget::QUICK);
        let mut figure = result.figure(ProbePhase::RandomRead).unwrap().clone();
        figure.iops.error = Some(0.074 * figure.iops.mean);
        (figure.sure, figure.settled) = (Some(true), Some(true));
        assert!(details(&figure, "±").starts_with("±7.4 %, p99 "));
        assert!(one_line(&figure, "+-").contains(" +-7.4 %, p99 "));
        figure.sure = Some(false);
        assert_eq!(doubts(&figure, "±"), ["uncertain: ±7.4 %"]);
    }

    #[test]
    fn reports_list_all_measured_phases() {
        let sorted = |mut phases: [ProbePhase; 7]| {
            phases.sort_by_key(|phase| phase.title());
            phases
        };
        assert_eq!(sorted(ORDER), sorted(ProbePhase::MEASURED));
    }
}
