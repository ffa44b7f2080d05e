//! Rate, or 99th percentile of latency, over the number of I/Os in flight.

use super::chart_data::{ChartPanel, ChartSeries, PlotPoint, SeriesShape, TimeMoments};
use super::chart_scales::{counts_axis, linear_axis, log_axis};
use super::figure_rows::{LARGE_BYTES, SERIES_MAX, figure_rows, pattern, workers_suffix};
use super::plot_input::{ChartParts, PlotInput, listed_names};
use crate::html::document::{PageRate, PageSweep, PageUnit};
use crate::unique;
use iosonde_study::sweep::CellBasis;

/// Rates that differ by more than this factor need a logarithmic axis.
const FAR: f64 = 40.0;

/// One pattern on one subject.
struct DepthLine {
    subject: String,
    pattern: String,
    is_large: bool,
    points: Vec<PlotDepthPoint>,
}

impl DepthLine {
    /// Subject and pattern. A sweep over depths alone has no pattern.
    fn full_name(&self) -> String {
        match self.pattern.is_empty() {
            true => self.subject.clone(),
            false => format!("{}: {}", self.subject, self.pattern),
        }
    }
}

struct PlotDepthPoint {
    depth: u32,
    iops: Option<PageRate>,
    bytes_per_s: Option<PageRate>,
    tail_ns: Option<PageRate>,
}

/// Vertical quantity of a chart over depth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DepthMeasure {
    Iops,
    Bandwidth,
    Tail,
}

impl DepthMeasure {
    fn title(self) -> &'static str {
        match self {
            DepthMeasure::Iops => "IOPS over depth",
            DepthMeasure::Bandwidth => "Bandwidth over depth",
            DepthMeasure::Tail => "99th percentile of latency over depth",
        }
    }

    fn label(self) -> &'static str {
        match self {
            DepthMeasure::Iops => "IOPS",
            DepthMeasure::Bandwidth => "bandwidth",
            DepthMeasure::Tail => "99th percentile of latency",
        }
    }

    fn unit(self) -> PageUnit {
        match self {
            DepthMeasure::Iops => PageUnit::Iops,
            DepthMeasure::Bandwidth => PageUnit::BytesPerS,
            DepthMeasure::Tail => PageUnit::Ns,
        }
    }

    fn rate(self, point: &PlotDepthPoint) -> Option<PageRate> {
        match self {
            DepthMeasure::Iops => point.iops,
            DepthMeasure::Bandwidth => point.bytes_per_s,
            DepthMeasure::Tail => point.tail_ns,
        }
    }

    fn rates(self, line: &DepthLine) -> Vec<PageRate> {
        let points = line.points.iter();
        points.filter_map(|point| self.rate(point)).collect()
    }
}

/// IOPS of small I/Os and bandwidth of large I/Os over depth, each in a panel of its own.
pub(super) fn rate_over_depth(input: &PlotInput) -> Option<ChartParts> {
    let (small, large): (Vec<_>, Vec<_>) = depth_lines(input)
        .into_iter()
        .partition(|line| !line.is_large);
    let small = draw(small, DepthMeasure::Iops);
    let large = draw(large, DepthMeasure::Bandwidth);
    match (small, large) {
        (Some(small), Some(large)) => Some(stack_panels(small, large)),
        (small, large) => small.or(large),
    }
}

/// Puts the panel of large I/Os below that of small ones, over the depths of both.
fn stack_panels(small: ChartParts, mut large: ChartParts) -> ChartParts {
    // A legend names the lines of both panels, so they have different colours.
    let first = small
        .panels
        .iter()
        .map(|panel| panel.series.len())
        .sum::<usize>();
    let series = large.panels.iter_mut().flat_map(|panel| &mut panel.series);
    series.for_each(|line| line.slot = (line.slot + first) % SERIES_MAX);
    let ticks = small.x.ticks.iter().chain(&large.x.ticks);
    let depths = ticks.map(|tick| tick.at as u32).collect();
    let is_plain =
        small.title == DepthMeasure::Iops.title() && large.title == DepthMeasure::Bandwidth.title();
    let join = |mut all: Vec<String>, more: Vec<String>| {
        all.extend(more);
        unique(all)
    };
    ChartParts {
        title: match is_plain {
            true => "IOPS and bandwidth over depth".to_owned(),
            false => format!("{} · {}", small.title, large.title),
        },
        x: counts_axis("I/Os in flight", depths),
        moments: TimeMoments::default(),
        panels: small.panels.into_iter().chain(large.panels).collect(),
        notes: join(small.notes, large.notes),
        subjects: join(small.subjects, large.subjects),
    }
}

/// 99th percentile of latency over depth.
pub(super) fn tail_over_depth(input: &PlotInput) -> Option<ChartParts> {
    draw(depth_lines(input), DepthMeasure::Tail)
}

/// Lines of the searches of probes and of runs at several depths, otherwise those of sweeps.
fn depth_lines(input: &PlotInput) -> Vec<DepthLine> {
    let mut lines = sweep_lines(input, &input.report.knees);
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
        let depth = figure.iodepth * figure.workers;
        if figure.direction == "sync" || depth == 0 {
            continue;
        }
        let pattern = format!("{}{}", pattern(figure), workers_suffix(figure));
        let is_large = figure.block_bytes[0] >= LARGE_BYTES;
        let mut marks = figure.latency.marks.iter();
        let tail = marks.find(|(share, _)| (share / 0.01 - 1.0).abs() < 1e-6);
        let point = PlotDepthPoint {
            depth,
            iops: Some(figure.iops),
            bytes_per_s: Some(figure.bytes_per_s),
            tail_ns: tail.map(|(_, ns)| PageRate::new(*ns, None)),
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
                iops: cell.iops,
                bytes_per_s: cell.bytes_per_s.map(|mean| PageRate::new(mean, None)),
                tail_ns: cell.percentiles_ns[1].map(|ns| PageRate::new(ns as f64, None)),
            });
            DepthLine {
                subject: subject.clone(),
                pattern: curve.values.join(" "),
                is_large: curve.block_bytes >= LARGE_BYTES,
                points: points.collect(),
            }
        })
    });
    lines.collect()
}

fn draw(mut lines: Vec<DepthLine>, measure: DepthMeasure) -> Option<ChartParts> {
    lines.retain(|line| !measure.rates(line).is_empty());
    if lines.is_empty() {
        return None;
    }
    let mut title = measure.title().to_owned();
    let total = lines.len();
    let mut others = Vec::new();
    if total > SERIES_MAX && unique(lines.iter().map(|line| &line.subject)).len() > 1 {
        // Each pattern would need its own chart: the first one of several subjects is drawn.
        let first = lines[0].pattern.clone();
        (lines, others) = lines.into_iter().partition(|line| line.pattern == first);
        if !first.is_empty() {
            title = format!("{first}: {title}");
        }
    }
    let mut left_out = lines.split_off(lines.len().min(SERIES_MAX));
    left_out.append(&mut others);
    let note = (!left_out.is_empty()).then(|| {
        let names: Vec<String> = left_out.iter().map(DepthLine::full_name).collect();
        let drawn = lines.len();
        format!(
            "{drawn} of {total} curves, without {}",
            listed_names(&names)
        )
    });
    let names = line_names(&lines);
    let rates: Vec<PageRate> = lines.iter().flat_map(|line| measure.rates(line)).collect();
    let depths = lines.iter().flat_map(|line| &line.points);
    let depths = depths.filter(|point| measure.rate(point).is_some());
    let depths = depths.map(|point| point.depth).collect();
    let best = lines.iter().map(|line| highest(&measure.rates(line)));
    let best: Vec<f64> = best.filter(|rate| *rate > 0.0).collect();
    let least = best.iter().copied().fold(f64::INFINITY, f64::min);
    let is_far = highest(&rates) > FAR * least;
    let y = if measure == DepthMeasure::Tail || is_far {
        let mut values: Vec<f64> = rates.iter().map(|rate| rate.mean).collect();
        values.push(highest(&rates));
        log_axis(measure.label(), measure.unit(), &values)
    } else {
        linear_axis(measure.label(), measure.unit(), highest(&rates))
    };
    let series = lines.iter().zip(names).enumerate();
    let series = series.map(|(slot, (line, name))| convert_line(line, name, slot, measure));
    Some(ChartParts {
        moments: TimeMoments::default(),
        title,
        x: counts_axis("I/Os in flight", depths),
        panels: vec![ChartPanel {
            y,
            series: series.collect(),
            cells: Vec::new(),
        }],
        notes: note.into_iter().collect(),
        subjects: unique(lines.iter().map(|line| line.subject.clone())),
    })
}

fn line_names(lines: &[DepthLine]) -> Vec<String> {
    let is_one_subject = lines.iter().all(|line| line.subject == lines[0].subject);
    let is_one_pattern = lines.iter().all(|line| line.pattern == lines[0].pattern);
    let name = |line: &DepthLine| match (is_one_subject, is_one_pattern) {
        (true, _) => line.pattern.clone(),
        (false, true) => line.subject.clone(),
        (false, false) => line.full_name(),
    };
    lines.iter().map(name).collect()
}

fn convert_line(line: &DepthLine, name: String, slot: usize, measure: DepthMeasure) -> ChartSeries {
    let known = line.points.iter();
    let known = known.filter_map(|point| Some((f64::from(point.depth), measure.rate(point)?)));
    let known: Vec<(f64, PageRate)> = known.collect();
    let band = known.iter().filter_map(|(depth, rate)| {
        let error = rate.error?;
        Some((*depth, (rate.mean - error).max(0.0), rate.mean + error))
    });
    ChartSeries {
        name,
        slot,
        shape: SeriesShape::Dotted,
        band: band.collect(),
        points: known
            .iter()
            .map(|(depth, rate)| PlotPoint::new(*depth, Some(rate.mean)))
            .collect(),
    }
}

/// Highest end of the intervals.
fn highest(rates: &[PageRate]) -> f64 {
    let ends = rates.iter();
    let ends = ends.map(|rate| rate.mean + rate.error.unwrap_or_default());
    ends.fold(0.0, f64::max)
}
