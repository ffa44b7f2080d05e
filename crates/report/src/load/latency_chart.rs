//! Chart of latency over offered rate for a terminal: 12 lines of at most 80 columns.

use super::is_judged;
use super::knee_rate::{KneeRate, has_fallen_behind};
use crate::text_style::TextStyle;
use iosonde_study::load::LoadResult;
use iosonde_study::words;

/// Columns and rows inside the axes.
const PLOT_COLUMNS: usize = 68;
const PLOT_ROWS: usize = 8;
/// Each row of this distance has its latency beside it.
const NAMED_ROWS: usize = 4;
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
struct ChartPoint {
    rate: f64,
    p50_ns: f64,
    /// `None`: too few I/Os were measured for a p99.
    p99_ns: Option<f64>,
}

/// Latencies over rates, with their ranges.
pub(super) struct LatencyChart {
    points: Vec<ChartPoint>,
    /// Rates with which the target did not keep up. Their latencies depend on the runtime.
    behind: Vec<f64>,
    /// Lowest and highest rate.
    rates: (f64, f64),
    /// Lowest and highest latency.
    latencies_ns: (f64, f64),
}

impl LatencyChart {
    /// Returns `None` if fewer than two sustained rates have a latency.
    pub(super) fn from_result(result: &LoadResult) -> Option<LatencyChart> {
        let judged = result.points.iter().filter(|point| is_judged(point));
        let points = judged.filter_map(|point| {
            Some(ChartPoint {
                rate: point.offered.total(),
                p50_ns: point.percentile_ns(50.0)?.max(1.0),
                p99_ns: point.percentile_ns(99.0).map(|ns| ns.max(1.0)),
            })
        });
        let mut points: Vec<ChartPoint> = points.collect();
        points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let behind = result
            .points
            .iter()
            .filter(|point| has_fallen_behind(point));
        let behind: Vec<f64> = behind.map(|point| point.offered.total()).collect();
        let rates = points.iter().map(|point| point.rate);
        let rates = range(rates.chain(behind.iter().copied()));
        let latencies = points
            .iter()
            .flat_map(|point| [Some(point.p50_ns), point.p99_ns]);
        let latencies_ns = range(latencies.flatten());
        let has_range = rates.1 > rates.0 && rates.0 > 0.0 && latencies_ns.1 > latencies_ns.0;
        (points.len() >= POINTS_LEAST && has_range).then_some(LatencyChart {
            points,
            behind,
            rates,
            latencies_ns,
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
        (share.clamp(0.0, 1.0) * (PLOT_COLUMNS - 1) as f64).round() as usize
    }

    /// Row of a latency inside the axes. Row 0 is the highest latency.
    fn row(&self, latency_ns: f64) -> usize {
        let (low, high) = self.latencies_ns;
        let share = (latency_ns / low).ln() / (high / low).ln();
        ((1.0 - share.clamp(0.0, 1.0)) * (PLOT_ROWS - 1) as f64).round() as usize
    }

    /// Latency of a row.
    fn latency_ns(&self, row: usize) -> f64 {
        let (low, high) = self.latencies_ns;
        let share = 1.0 - row as f64 / (PLOT_ROWS - 1) as f64;
        low * (high / low).powf(share)
    }

    /// Returns the lines of the chart.
    pub(super) fn lines(&self, knee: Option<&KneeRate>, style: TextStyle) -> Vec<String> {
        let characters = if style.utf8 { &UTF8 } else { &ASCII };
        let plot = self.plot(characters);
        let mut lines = vec![self.legend(characters, &plot)];
        for (row, cells) in plot.iter().enumerate() {
            let is_named = row.is_multiple_of(NAMED_ROWS) || row == PLOT_ROWS - 1;
            let name = is_named.then(|| words::latency(self.latency_ns(row)));
            let name = name.unwrap_or_default();
            let cells: String = cells.iter().collect();
            let line = format!("{name:>8} {}{cells}", characters.side);
            lines.push(line.trim_end().to_owned());
        }
        let bottom = characters.bottom.to_string().repeat(PLOT_COLUMNS);
        lines.push(format!("{:9}{}{bottom}", "", characters.corner));
        lines.extend(knee.map(|knee| self.knee_line(knee, characters)));
        lines.push(self.rate_line());
        lines
    }

    fn plot(&self, characters: &ChartCharacters) -> Vec<Vec<char>> {
        let mut plot = vec![vec![' '; PLOT_COLUMNS]; PLOT_ROWS];
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
        format!("latency over offered rate, {scale}: {}", names.join(", "))
    }

    /// Marks the knee at its column. The name stands where it fits.
    fn knee_line(&self, knee: &KneeRate, characters: &ChartCharacters) -> String {
        let (column, mark) = (self.column(knee.rate), characters.knee);
        let width = MARGIN_COLUMNS + column;
        let name = format!(" knee {} ", words::iops(knee.rate));
        match column + name.len() > PLOT_COLUMNS {
            true => format!("{name:>width$}{mark}"),
            false => format!("{:width$}{mark}{}", "", name.trim_end()),
        }
    }

    fn rate_line(&self) -> String {
        const END_COLUMNS: usize = 12;
        let (low, high) = (words::iops(self.rates.0), words::iops(self.rates.1));
        format!(
            "{:MARGIN_COLUMNS$}{low:<END_COLUMNS$}{:^middle$}{high:>END_COLUMNS$}",
            "",
            "offered IOPS",
            middle = PLOT_COLUMNS - 2 * END_COLUMNS
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
        }
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
        for row in 0..PLOT_ROWS {
            assert_eq!(linear.row(linear.latency_ns(row)), row);
        }
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
