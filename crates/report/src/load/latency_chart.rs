//! Chart of latency over offered rate for a terminal: 12 lines as wide as a paragraph, or less.

use super::is_judged;
use super::knee_rate::{KneeRate, has_fallen_behind};
use super::round_latency::{latency_name, round_latencies, roundness};
use crate::text_style::TextStyle;
use crate::text_table::columns;
use iosonde_study::load::{LoadMeasurement, LoadResult};
use iosonde_study::words;

/// Columns and rows inside the axes.
const PLOT_COLUMNS: usize = 68;
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
            columns: PLOT_COLUMNS.min(columns() - MARGIN_COLUMNS - 2),
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
            columns: columns.min(PLOT_COLUMNS),
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
}

impl GrowingCurve {
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
        let chart = size.and_then(|size| LatencyChart::new(points, behind, size));
        chart.map_or(Vec::new(), |chart| chart.lines(None, style))
    }
}

/// Latencies over rates, with their ranges.
pub(super) struct LatencyChart {
    points: Vec<ChartPoint>,
    /// Rates with which the target did not keep up. Their latencies depend on the runtime.
    behind: Vec<f64>,
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
        LatencyChart::new(points, behind, PlotCells::of_report())
    }

    fn new(mut points: Vec<ChartPoint>, behind: Vec<f64>, size: PlotCells) -> Option<LatencyChart> {
        points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let rates = points.iter().map(|point| point.rate);
        let rates = range(rates.chain(behind.iter().copied()));
        let latencies = points
            .iter()
            .flat_map(|point| [Some(point.p50_ns), point.p99_ns]);
        let latencies_ns = range(latencies.flatten());
        let has_range = rates.1 > rates.0 && rates.0 > 0.0 && latencies_ns.1 > latencies_ns.0;
        (points.len() >= POINTS_LEAST && has_range).then(|| LatencyChart {
            points,
            behind,
            rates,
            latencies_ns: range(round_latencies(latencies_ns).into_iter()),
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
            true => (rate / low).ln() / (high / low).ln(),
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
        let (low, high) = self.latencies_ns;
        let share = (latency_ns / low).ln() / (high / low).ln();
        ((1.0 - share.clamp(0.0, 1.0)) * (self.size.rows - 1) as f64).round() as usize
    }

    /// Latencies that are named, with their rows: the ends of the axis, and round ones between
    /// them where there is room. Powers of ten go first.
    fn named_rows(&self) -> Vec<(usize, f64)> {
        let (low, high) = self.latencies_ns;
        let mut named = vec![(0, high), (self.size.rows - 1, low)];
        let mut between = round_latencies(self.latencies_ns);
        between.sort_by_key(|ns| roundness(*ns));
        for ns in between {
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
        let plot = self.plot(characters);
        let named = self.named_rows();
        let mut lines = vec![self.legend(characters, &plot)];
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

    /// Explains the signs that the plot holds.
    fn legend(&self, characters: &ChartCharacters, plot: &[Vec<char>]) -> String {
        let signs = [
            (characters.p99, "p99"),
            (characters.p50, "p50"),
            (characters.both, "both"),
            (characters.behind, "fell behind"),
        ];
        let used = signs
            .iter()
            .filter(|(sign, _)| plot.iter().flatten().any(|cell| cell == sign));
        let names: Vec<String> = used.map(|(sign, name)| format!("{sign} {name}")).collect();
        let scale = match self.has_log_rates() {
            true => "log scales",
            false => "log scale",
        };
        let names = names.join(", ");
        let width = MARGIN_COLUMNS + self.size.columns;
        let scaled = format!("{scale}: {names}");
        let named = format!("latency over offered rate, {scaled}");
        let mut texts = [named, scaled].into_iter();
        let fitting = texts.find(|text| text.chars().count() <= width);
        fitting.unwrap_or(names)
    }

    /// Marks the knee at its column. The name stands where it fits.
    fn knee_line(&self, knee: &KneeRate, characters: &ChartCharacters) -> String {
        let (column, mark) = (self.column(knee.rate), characters.knee);
        let width = MARGIN_COLUMNS + column;
        let name = format!(" knee {} ", words::iops(knee.rate));
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
        let (low, high) = (words::iops(self.rates.0), words::iops(self.rates.1));
        format!(
            "{:MARGIN_COLUMNS$}{low:<end$}{name:^middle$}{high:>end$}",
            ""
        )
    }
}

/// Lowest and highest value.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_study::load::Offered;

    fn chart(rates: (f64, f64)) -> LatencyChart {
        let point = |rate: f64, p99_ns: f64| ChartPoint {
            rate,
            p50_ns: 1e5,
            p99_ns: Some(p99_ns),
        };
        LatencyChart {
            points: vec![point(rates.0, 1e5), point(rates.1, 1e8)],
            behind: Vec::new(),
            rates,
            latencies_ns: (1e5, 1e8),
            size: PlotCells::of_report(),
        }
    }

    /// A curve of these rates, whose latencies grow. The target falls behind the last rate.
    fn growing(rates: &[f64]) -> GrowingCurve {
        let point = |rate: &f64| ChartPoint {
            rate: *rate,
            p50_ns: 100.0 * rate,
            p99_ns: Some(300.0 * rate),
        };
        let (behind, sustained) = rates.split_last().unwrap();
        GrowingCurve {
            points: sustained.iter().map(point).collect(),
            behind: vec![*behind],
        }
    }

    #[test]
    fn growing_curve_fits_each_terminal() {
        let curve = growing(&[3000.0, 1000.0, 2000.0, 5000.0]);
        for (columns, rows) in [(40, 6), (40, 8), (80, 19), (120, 35)] {
            for style in [
                TextStyle::PLAIN,
                TextStyle {
                    utf8: true,
                    color: false,
                },
            ] {
                let lines = curve.lines(columns, rows, style);
                assert_eq!(lines.len(), rows.min(11), "{lines:?}");
                let widest = lines.iter().map(|line| line.chars().count()).max();
                assert!(widest.unwrap() < columns, "{lines:?}");
                assert!(lines[0].contains("p99") && lines[0].contains("fell behind"));
                let rates = lines.last().unwrap();
                assert!(
                    rates.contains("1.00k") && rates.ends_with("5.00k"),
                    "{rates}"
                );
            }
        }
        // A chart needs room, and two rates.
        assert!(curve.lines(40, 5, TextStyle::PLAIN).is_empty());
        assert!(curve.lines(30, 24, TextStyle::PLAIN).is_empty());
        let begun = growing(&[1000.0, 5000.0]);
        assert!(begun.lines(80, 24, TextStyle::PLAIN).is_empty());
    }

    #[test]
    fn interrupted_run_leaves_its_rate_as_it_was() {
        let mut curve = growing(&[1000.0, 2000.0, 5000.0]);
        let interrupted = LoadMeasurement {
            offered: Offered {
                reads_per_s: 2000.0,
                writes_per_s: 0.0,
            },
            read: None,
            write: None,
            runs: 1,
            kept_up: false,
            interrupted: true,
            verdicts: Vec::new(),
            kinds: Vec::new(),
            failure: None,
            percentile_intervals_ns: Vec::new(),
        };
        curve.add(&interrupted);
        assert_eq!((curve.points.len(), curve.behind.len()), (2, 1));
        curve.add(&LoadMeasurement {
            interrupted: false,
            ..interrupted
        });
        assert_eq!((curve.points.len(), curve.behind.len()), (1, 2));
    }

    #[test]
    fn axes_begin_and_end_at_their_ranges() {
        let linear = chart((1000.0, 5000.0));
        let columns = [1000.0, 3000.0, 5000.0].map(|rate| linear.column(rate));
        assert_eq!(columns, [0, 34, PLOT_COLUMNS - 1]);
        let log = chart((10.0, 10_000.0));
        let columns = [10.0, 316.3, 10_000.0].map(|rate| log.column(rate));
        assert_eq!(columns, [0, 34, PLOT_COLUMNS - 1]);
        let rows = [1e5, 1e8].map(|ns| linear.row(ns));
        assert_eq!(rows, [PLOT_ROWS - 1, 0]);
    }

    #[test]
    fn axis_of_latencies_names_round_ones() {
        let chart = chart((1000.0, 5000.0));
        assert_eq!(chart.named_rows(), [(0, 1e8), (7, 1e5), (5, 1e6), (2, 1e7)]);
        let lines = chart.lines(None, TextStyle::PLAIN);
        assert!(lines[1].starts_with("  100 ms |"), "{lines:?}");
        assert!(lines[3].starts_with("   10 ms |"), "{lines:?}");
        assert!(lines[6].starts_with("    1 ms |"), "{lines:?}");
        assert!(lines[8].starts_with("  100 us |"), "{lines:?}");
        assert!(lines[2].starts_with("         |"), "{lines:?}");
    }

    #[test]
    fn rate_without_p99_keeps_its_median() {
        let mut few = chart((1000.0, 5000.0));
        few.points[0].p99_ns = None;
        let plot = few.plot(&ASCII);
        // The median is drawn, and no line leads to a p99 that is missing.
        assert_eq!((plot[7][0], plot[0][67], plot[7][67]), ('o', '#', 'o'));
        assert!(plot[..7].iter().all(|row| !row.contains(&ASCII.line)));
    }

    #[test]
    fn line_joins_points_in_each_column() {
        let plot = chart((1000.0, 5000.0)).plot(&ASCII);
        assert_eq!((plot[7][0], plot[0][67], plot[7][67]), ('@', '#', 'o'));
        for column in 0..PLOT_COLUMNS {
            let is_empty = plot.iter().all(|row| row[column] == ' ');
            assert!(!is_empty, "{column}");
        }
    }
}
