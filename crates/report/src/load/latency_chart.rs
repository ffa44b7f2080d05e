//! Chart of latency over offered rate for a terminal: 12 lines as wide as a paragraph, or less, and
//! a line for each objective beyond the scale that has no room inside the axes.

mod objective_rows;

use super::is_judged;
use super::knee_rate::{KneeRate, has_fallen_behind};
use super::objective_limits::{ScaleSide, extension_range};
use super::round_latency::{latency_name, round_latencies, roundness};
use crate::axis_numbers::{log_share, value_range};
use crate::text_style::TextStyle;
use crate::text_table::wide_columns;
use iosonde_study::load::{LoadMeasurement, LoadResult, Objective};
use iosonde_study::words;

/// Columns inside the axes at 80 columns, and on a wide terminal. Rows inside the axes.
const PLOT_COLUMNS: usize = 68;
const PLOT_COLUMNS_MAX: usize = 108;
const PLOT_ROWS: usize = 8;
/// Fewest columns and rows inside the axes that show a curve.
const PLOT_COLUMNS_LEAST: usize = 20;
const PLOT_ROWS_LEAST: usize = 3;
/// Lines of a chart that are not inside the axes, apart from the line of the knee.
const LINES_OUTSIDE: usize = 3;
/// Most columns of the lowest and the highest rate below the chart, each.
const RATE_COLUMNS: usize = 12;
/// Smallest distance of rows with a latency beside them.
const NAMED_ROWS_APART: usize = 2;
/// Columns before the plot: a latency, a blank and the axis.
const MARGIN_COLUMNS: usize = 10;
/// Rates are on a logarithmic axis if the highest is at least this multiple of the lowest.
const LOG_RATES_FROM: f64 = 100.0;
/// Smallest number of points that make a chart.
const POINTS_LEAST: usize = 2;

/// Characters of a chart.
struct ChartCharacters {
    p99: char,
    p50: char,
    both: char,
    behind: char,
    line: char,
    objective: char,
    knee: char,
    side: char,
    corner: char,
    bottom: char,
}

const UTF8: ChartCharacters = ChartCharacters {
    p99: '●',
    p50: '○',
    both: '◉',
    behind: '×',
    line: '·',
    objective: '╌',
    knee: '▲',
    side: '│',
    corner: '└',
    bottom: '─',
};
const ASCII: ChartCharacters = ChartCharacters {
    p99: '#',
    p50: 'o',
    both: '@',
    behind: 'x',
    line: '.',
    objective: '-',
    knee: '^',
    side: '|',
    corner: '+',
    bottom: '-',
};

/// A rate that the target sustained.
#[derive(Debug, Clone)]
struct ChartPoint {
    rate: f64,
    p50_ns: f64,
    /// `None`: too few I/Os were measured for a p99.
    p99_ns: Option<f64>,
}

impl ChartPoint {
    /// Returns `None` if the latencies are not valid for the rate, or too few I/Os were measured.
    fn from_measurement(point: &LoadMeasurement) -> Option<ChartPoint> {
        let p50_ns = point.percentile_ns(50.0).filter(|_| is_judged(point))?;
        Some(ChartPoint {
            rate: point.offered.total(),
            p50_ns: p50_ns.max(1.0),
            p99_ns: point.percentile_ns(99.0).map(|ns| ns.max(1.0)),
        })
    }
}

/// Columns and rows inside the axes of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlotCells {
    columns: usize,
    rows: usize,
}

impl PlotCells {
    /// Size of the chart of a report.
    fn of_report() -> PlotCells {
        PlotCells {
            columns: wide_columns() - MARGIN_COLUMNS - 2,
            rows: PLOT_ROWS,
        }
    }

    /// Size of a chart of at most `rows` lines of less than `columns`. `None`: it has no room.
    fn within(columns: usize, rows: usize) -> Option<PlotCells> {
        let (columns, rows) = (
            columns.saturating_sub(MARGIN_COLUMNS + 1),
            rows.saturating_sub(LINES_OUTSIDE),
        );
        let has_room = columns >= PLOT_COLUMNS_LEAST && rows >= PLOT_ROWS_LEAST;
        has_room.then_some(PlotCells {
            // One column less from 80 columns on, as in a report.
            columns: columns
                .min(PLOT_COLUMNS.max(columns.saturating_sub(1)))
                .min(PLOT_COLUMNS_MAX),
            rows: rows.min(PLOT_ROWS),
        })
    }
}

/// Latency curve of a load study that runs.
#[derive(Debug, Default)]
pub struct GrowingCurve {
    points: Vec<ChartPoint>,
    /// Rates with which the target did not keep up.
    behind: Vec<f64>,
    objectives: Vec<Objective>,
}

impl GrowingCurve {
    /// Creates a curve without rates, which is drawn with these objectives.
    pub fn with_objectives(objectives: Vec<Objective>) -> GrowingCurve {
        GrowingCurve {
            objectives,
            ..GrowingCurve::default()
        }
    }

    /// Adds all runs at a rate together. They replace those at the same rate, of which they
    /// contain all. An interrupted run is left out.
    pub fn add(&mut self, measured: &LoadMeasurement) {
        if measured.interrupted {
            return;
        }
        let rate = measured.offered.total();
        self.points.retain(|point| point.rate != rate);
        self.behind.retain(|behind| *behind != rate);
        self.points.extend(ChartPoint::from_measurement(measured));
        self.behind
            .extend(has_fallen_behind(measured).then_some(rate));
    }

    /// Returns the chart: at most `rows` lines of less than `columns`. Empty without room, and
    /// before two sustained rates have a latency.
    #[must_use]
    pub fn lines(&self, columns: usize, rows: usize, style: TextStyle) -> Vec<String> {
        let size = PlotCells::within(columns, rows);
        let (points, behind) = (self.points.clone(), self.behind.clone());
        let objectives = self.objectives.clone();
        let chart = size.and_then(|size| LatencyChart::new(points, behind, objectives, size));
        let Some(chart) = chart else {
            return Vec::new();
        };
        let mut lines = chart.lines(None, style);
        // Notes on objectives follow the legend. Those that have no room are left out.
        let excess = lines.len().saturating_sub(rows);
        lines.drain(1..1 + excess);
        lines
    }
}

/// Latencies over rates, with their ranges.
pub(super) struct LatencyChart {
    points: Vec<ChartPoint>,
    /// Rates with which the target did not keep up. Their latencies depend on the runtime.
    behind: Vec<f64>,
    objectives: Vec<Objective>,
    /// Lowest and highest rate.
    rates: (f64, f64),
    /// Ends of the axis of latencies: the next round ones.
    latencies_ns: (f64, f64),
    size: PlotCells,
}

impl LatencyChart {
    /// Returns `None` if fewer than two sustained rates have a latency.
    pub(super) fn from_result(result: &LoadResult) -> Option<LatencyChart> {
        let points = result.points.iter();
        let points = points.filter_map(ChartPoint::from_measurement).collect();
        let behind = result
            .points
            .iter()
            .filter(|point| has_fallen_behind(point));
        let behind = behind.map(|point| point.offered.total()).collect();
        let objectives = result.objectives.iter().map(|found| found.objective);
        LatencyChart::new(points, behind, objectives.collect(), PlotCells::of_report())
    }

    fn new(
        mut points: Vec<ChartPoint>,
        behind: Vec<f64>,
        objectives: Vec<Objective>,
        size: PlotCells,
    ) -> Option<LatencyChart> {
        points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let rates = points.iter().map(|point| point.rate);
        let rates = value_range(rates.chain(behind.iter().copied()));
        let latencies = points
            .iter()
            .flat_map(|point| [Some(point.p50_ns), point.p99_ns]);
        let latencies_ns = value_range(latencies.flatten());
        let has_range = rates.1 > rates.0 && rates.0 > 0.0 && latencies_ns.1 > latencies_ns.0;
        let near_ns = extension_range(latencies_ns);
        let on_scale = objectives
            .iter()
            .map(|objective| objective.latency_ns as f64)
            .filter(|ns| ScaleSide::of_latency(*ns, near_ns).is_none());
        let shown_ns = value_range([latencies_ns.0, latencies_ns.1].into_iter().chain(on_scale));
        (points.len() >= POINTS_LEAST && has_range).then(|| LatencyChart {
            points,
            behind,
            objectives,
            rates,
            latencies_ns: value_range(round_latencies(shown_ns).into_iter()),
            size,
        })
    }

    /// Whether rates are on a logarithmic axis.
    fn has_log_rates(&self) -> bool {
        self.rates.1 >= self.rates.0 * LOG_RATES_FROM
    }

    /// Column of a rate inside the axes.
    fn column(&self, rate: f64) -> usize {
        let (low, high) = self.rates;
        let share = match self.has_log_rates() {
            true => log_share(rate, self.rates),
            false => (rate - low) / (high - low),
        };
        debug_assert!(
            (-0.001..=1.001).contains(&share),
            "{rate} of {low} to {high}"
        );
        (share.clamp(0.0, 1.0) * (self.size.columns - 1) as f64).round() as usize
    }

    /// Row of a latency inside the axes. Row 0 is the highest latency.
    fn row(&self, latency_ns: f64) -> usize {
        let share = log_share(latency_ns, self.latencies_ns);
        ((1.0 - share.clamp(0.0, 1.0)) * (self.size.rows - 1) as f64).round() as usize
    }

    /// Latencies that are named, with their rows: the ends of the axis, and between them objectives
    /// and round latencies where there is room. Powers of ten go first among the round ones.
    fn named_rows(&self) -> Vec<(usize, f64)> {
        let (low, high) = self.latencies_ns;
        let mut named = vec![(0, high), (self.size.rows - 1, low)];
        let mut between = round_latencies(self.latencies_ns);
        between.sort_by_key(|ns| roundness(*ns));
        let objectives = self.objectives.iter();
        let objectives = objectives.map(|objective| objective.latency_ns as f64);
        let objectives = objectives.filter(|ns| self.side_of(*ns).is_none());
        for ns in objectives.chain(between) {
            let row = self.row(ns);
            let is_apart = |(other, _): &(usize, f64)| row.abs_diff(*other) >= NAMED_ROWS_APART;
            if named.iter().all(is_apart) {
                named.push((row, ns));
            }
        }
        named
    }

    /// Returns the lines of the chart.
    pub(super) fn lines(&self, knee: Option<&KneeRate>, style: TextStyle) -> Vec<String> {
        let characters = if style.utf8 { &UTF8 } else { &ASCII };
        let points = self.plot(characters);
        let mut plot = points.clone();
        let (are_named, notes) = self.draw_objectives(&mut plot, characters.objective);
        let named = self.named_rows();
        let mut lines = vec![self.legend(characters, &points, are_named)];
        lines.extend(notes);
        for (row, cells) in plot.iter().enumerate() {
            let name = named.iter().find(|(named, _)| *named == row);
            let name = name.map(|(_, ns)| latency_name(*ns)).unwrap_or_default();
            let cells: String = cells.iter().collect();
            let line = format!("{name:>8} {}{cells}", characters.side);
            lines.push(line.trim_end().to_owned());
        }
        let bottom = characters.bottom.to_string().repeat(self.size.columns);
        lines.push(format!("{:9}{}{bottom}", "", characters.corner));
        lines.extend(knee.map(|knee| self.knee_line(knee, characters)));
        lines.push(self.rate_line());
        lines
    }

    fn plot(&self, characters: &ChartCharacters) -> Vec<Vec<char>> {
        let mut plot = vec![vec![' '; self.size.columns]; self.size.rows];
        let figures: [fn(&ChartPoint) -> Option<f64>; 2] =
            [|point| Some(point.p50_ns), |point| point.p99_ns];
        for latency_ns in figures {
            let known = self.points.iter();
            let known = known.filter_map(|point| Some((point.rate, latency_ns(point)?)));
            let known: Vec<(f64, f64)> = known.collect();
            for pair in known.windows(2) {
                let ((rate, from), (next_rate, to)) = (pair[0], pair[1]);
                let (first, last) = (self.column(rate), self.column(next_rate));
                let between = (first..last).map(|column| {
                    let share = (column - first) as f64 / (last - first) as f64;
                    (column, self.row(from * (to / from).powf(share)))
                });
                for (column, row) in between {
                    plot[row][column] = characters.line;
                }
            }
        }
        for point in &self.points {
            plot[self.row(point.p50_ns)][self.column(point.rate)] = characters.p50;
        }
        for point in &self.points {
            let Some(p99_ns) = point.p99_ns else {
                continue;
            };
            let place = &mut plot[self.row(p99_ns)][self.column(point.rate)];
            *place = match *place == characters.p50 {
                true => characters.both,
                false => characters.p99,
            };
        }
        for rate in &self.behind {
            plot[0][self.column(*rate)] = characters.behind;
        }
        plot
    }

    /// Explains the signs that the plot of `points` holds, and the rows of objectives unless all
    /// `are_named`.
    fn legend(
        &self,
        characters: &ChartCharacters,
        points: &[Vec<char>],
        are_named: bool,
    ) -> String {
        let signs = [
            (characters.p99, "p99"),
            (characters.p50, "p50"),
            (characters.both, "both"),
            (characters.behind, "fell behind"),
        ];
        let used = signs
            .iter()
            .filter(|(sign, _)| points.iter().flatten().any(|cell| cell == sign));
        let names: Vec<String> = used.map(|(sign, name)| format!("{sign} {name}")).collect();
        let scale = match self.has_log_rates() {
            true => "log scales",
            false => "log scale",
        };
        let names = names.join(", ");
        let width = MARGIN_COLUMNS + self.size.columns;
        let fits = |text: &String| text.chars().count() <= width;
        let fitting = |names: &str| {
            let scaled = format!("{scale}: {names}");
            let named = format!("latency over offered rate, {scaled}");
            [named, scaled].into_iter().find(fits)
        };
        let with_objective = format!("{names}, {} objective", characters.objective);
        let explained = match are_named {
            true => None,
            false => fitting(&with_objective).or_else(|| Some(with_objective).filter(fits)),
        };
        explained.or_else(|| fitting(&names)).unwrap_or(names)
    }

    /// Marks the knee at its column. The name stands where it fits.
    fn knee_line(&self, knee: &KneeRate, characters: &ChartCharacters) -> String {
        let (column, mark) = (self.column(knee.rate), characters.knee);
        let width = MARGIN_COLUMNS + column;
        let name = format!(" knee {} ", words::iops_text(knee.rate));
        match column + name.len() > self.size.columns {
            true => format!("{name:>width$}{mark}"),
            false => format!("{:width$}{mark}{}", "", name.trim_end()),
        }
    }

    fn rate_line(&self) -> String {
        let end = RATE_COLUMNS.min(self.size.columns / 2);
        let middle = self.size.columns - 2 * end;
        let name = "offered IOPS";
        let name = if name.len() < middle { name } else { "" };
        let (low, high) = (
            words::iops_text(self.rates.0),
            words::iops_text(self.rates.1),
        );
        format!(
            "{:MARGIN_COLUMNS$}{low:<end$}{name:^middle$}{high:>end$}",
            ""
        )
    }
}

#[cfg(test)]
mod tests;
