//! Lines over the number of I/Os in flight: a pattern on a subject, with the figures of each depth.

use super::figure_rows::{LARGE_BYTES, figure_rows, pattern, total_depth, workers_suffix};
use super::plot_input::PlotInput;
use crate::html::document::{PageRate, PageSweep};
use crate::unique;
use iosonde_result::compare::Subject;
use iosonde_study::sweep::CellBasis;

/// One pattern on one subject.
pub(super) struct DepthLine {
    pub(super) subject: String,
    pub(super) pattern: String,
    pub(super) is_large: bool,
    pub(super) points: Vec<PlotDepthPoint>,
    /// Whether the points are short runs of the search of a probe.
    pub(super) is_search: bool,
}

impl DepthLine {
    /// Subject and pattern. A sweep over depths alone has no pattern.
    pub(super) fn full_name(&self) -> String {
        match self.pattern.is_empty() {
            true => self.subject.clone(),
            false => format!("{}: {}", self.subject, self.pattern),
        }
    }
}

/// The figures of one depth.
pub(super) struct PlotDepthPoint {
    pub(super) depth: u32,
    pub(super) iops: Option<DepthValue>,
    pub(super) bytes_per_s: Option<DepthValue>,
    pub(super) tail_ns: Option<DepthValue>,
}

/// A figure with the ends of its 95 % interval, if that is known and does not reach zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DepthValue {
    pub(super) mean: f64,
    pub(super) between: Option<(f64, f64)>,
}

impl DepthValue {
    pub(super) fn from_rate(rate: PageRate) -> DepthValue {
        let mean = rate.mean;
        DepthValue {
            mean,
            between: rate.error.map(|error| (mean - error, mean + error)),
        }
    }

    /// A bandwidth with the relative interval of its rate: all I/Os of a curve have the same size.
    pub(super) fn from_bandwidth(mean: f64, iops: Option<PageRate>) -> DepthValue {
        let share = iops.and_then(|iops| Some(iops.error? / iops.mean));
        DepthValue::from_rate(PageRate::new(mean, share.map(|share| share * mean)))
    }
}

/// Patterns of the lines, in the order of the panels.
pub(super) fn depth_patterns(input: &PlotInput) -> Vec<String> {
    let mut lines = depth_lines(input);
    lines.sort_by_key(|line| line.is_large);
    lines.into_iter().map(|line| line.pattern).collect()
}

/// Lines of the searches of probes and of runs at several depths, otherwise those of sweeps.
pub(super) fn depth_lines(input: &PlotInput) -> Vec<DepthLine> {
    let mut lines = sweep_lines(input, &input.report.knees);
    lines.iter_mut().for_each(|line| line.is_search = true);
    let searched: Vec<String> = lines.iter().map(|line| line.subject.clone()).collect();
    // The search of a probe has the depths of its phases too.
    let of_runs = run_lines(input).into_iter();
    lines.extend(of_runs.filter(|line| !searched.contains(&line.subject)));
    if lines.is_empty() {
        lines = sweep_lines(input, &input.report.sweeps);
        lines.retain(|line| line.points.len() > 1);
    }
    lines
}

fn run_lines(input: &PlotInput) -> Vec<DepthLine> {
    let mut lines: Vec<DepthLine> = Vec::new();
    for row in figure_rows(&input.report, &input.subjects) {
        let figure = row.figure;
        let depth = total_depth(figure);
        if figure.direction == Subject::Sync || depth == 0 {
            continue;
        }
        let pattern = format!("{}{}", pattern(figure), workers_suffix(figure));
        let is_large = figure.block_bytes[0] >= LARGE_BYTES;
        let mut marks = figure.latency.marks.iter();
        let tail = marks.find(|(share, _)| (share / 0.01 - 1.0).abs() < 1e-6);
        let point = PlotDepthPoint {
            depth,
            iops: Some(DepthValue::from_rate(figure.iops)),
            bytes_per_s: Some(DepthValue::from_rate(figure.bytes_per_s)),
            tail_ns: tail.map(|(_, ns)| DepthValue {
                mean: *ns,
                between: figure.percentile_bounds[1],
            }),
        };
        let mut known = lines.iter_mut();
        let same = known.find(|line| line.subject == row.subject && line.pattern == pattern);
        match same {
            Some(line) => {
                line.is_large &= is_large;
                line.points.push(point);
            }
            None => lines.push(DepthLine {
                subject: row.subject.to_owned(),
                pattern,
                is_large,
                points: vec![point],
                is_search: false,
            }),
        }
    }
    for line in &mut lines {
        line.points.sort_by_key(|point| point.depth);
    }
    lines.retain(|line| {
        let depths = line.points.iter().map(|point| point.depth);
        unique(depths).len() > 1
    });
    lines
}

fn sweep_lines(input: &PlotInput, sweeps: &[PageSweep]) -> Vec<DepthLine> {
    let lines = sweeps.iter().flat_map(|sweep| {
        let subject = input.subject_of_result(&sweep.source, &sweep.target);
        sweep.curves.iter().map(move |curve| {
            let cells = curve.cells.iter();
            let measured = cells.filter(|cell| matches!(cell.basis, CellBasis::Measured));
            let points = measured.map(|cell| PlotDepthPoint {
                depth: cell.iodepth,
                iops: cell.iops.map(DepthValue::from_rate),
                bytes_per_s: (cell.bytes_per_s)
                    .map(|mean| DepthValue::from_bandwidth(mean, cell.iops)),
                tail_ns: cell.percentiles_ns[1].map(|ns| DepthValue {
                    mean: ns as f64,
                    between: (cell.p99_between_ns).map(|(low, high)| (low as f64, high as f64)),
                }),
            });
            DepthLine {
                subject: subject.clone(),
                pattern: curve.values.join(" "),
                is_large: curve.block_bytes >= LARGE_BYTES,
                points: points.collect(),
                is_search: false,
            }
        })
    });
    lines.collect()
}
