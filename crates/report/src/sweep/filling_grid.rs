//! [`FillingGrid`]: the heat table of a sweep that runs.

use super::heat_table::shade;
use super::recommendation::label;
use super::unit_name;
use crate::text_style::TextStyle;
use iosonde_study::saturation::CurveCell;
use iosonde_study::sweep::{Axis, CurvePlan};
use std::collections::BTreeMap;
use std::ops::Range;

/// Largest number of curves in the table: the last ones.
const ROWS_MAX: usize = 10;
/// Width of a cell: its shade, or its depth in the first line.
const CELL_COLUMNS: usize = 4;
/// Largest width of a curve's name.
const NAME_COLUMNS: usize = 28;

/// Grid of a sweep that runs: a heat table with a line per curve, in the order of the first runs.
#[derive(Debug, Default)]
pub struct FillingGrid {
    axes: Vec<Axis>,
    depths: Vec<u32>,
    /// Values of the axes, and the measured cells by depth.
    curves: Vec<(Vec<String>, BTreeMap<u32, ShadedCell>)>,
    /// Index of the curve that runs, and the depth of the cell that runs.
    current: (usize, Option<u32>),
}

/// A measured cell.
#[derive(Debug, Clone, Copy)]
struct ShadedCell {
    iops: f64,
    /// Mean size of its I/Os. Shades compare cells of one size.
    io_bytes: u64,
}

impl FillingGrid {
    /// Creates a grid of which no cell is measured. The last axis is the depth.
    #[must_use]
    pub fn new(axes: &[Axis]) -> FillingGrid {
        let depths = axes.last().map_or(&[][..], |axis| axis.values.as_slice());
        FillingGrid {
            axes: axes.to_vec(),
            depths: depths
                .iter()
                .filter_map(|depth| depth.parse().ok())
                .collect(),
            ..FillingGrid::default()
        }
    }

    /// Returns the axes.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Starts or continues a curve.
    pub fn begin_curve(&mut self, plan: &CurvePlan) {
        let known = self
            .curves
            .iter()
            .position(|(values, _)| *values == plan.values);
        let index = known.unwrap_or_else(|| {
            self.curves.push((plan.values.clone(), BTreeMap::new()));
            self.curves.len() - 1
        });
        self.current = (index, None);
    }

    /// Starts a cell of the current curve.
    pub fn begin_cell(&mut self, iodepth: u32) {
        self.current.1 = Some(iodepth);
    }

    /// Records a measured cell of the current curve.
    pub fn record(&mut self, cell: &CurveCell) {
        if let Some((_, cells)) = self.curves.get_mut(self.current.0) {
            let heat = ShadedCell {
                iops: cell.iops.mean,
                io_bytes: (cell.bytes_per_s.mean / cell.iops.mean.max(1.0)).round() as u64,
            };
            cells.insert(cell.iodepth, heat);
        }
    }

    /// Returns at most `rows` lines of less than `columns`. Cells that are not measured are blank,
    /// and `>` marks the cell that runs. Where depths or curves have no room, those near the cell
    /// that runs are shown. Empty if the depth has one value, or without room for a curve.
    #[must_use]
    pub fn lines(&self, columns: usize, rows: usize, style: TextStyle) -> Vec<String> {
        let shades = style.shades();
        if self.curves.is_empty() || self.depths.len() < 2 || rows < 2 {
            return Vec::new();
        }
        let names = self
            .curves
            .iter()
            .map(|(values, _)| unit_name(&self.axes, values));
        let names: Vec<String> = names.collect();
        let longest = names.iter().map(|name| name.chars().count()).max();
        let room = columns.saturating_sub(CELL_COLUMNS * self.depths.len() + 1);
        let width = longest
            .unwrap_or(0)
            .clamp("depth".len(), NAME_COLUMNS)
            .min(room.max(8));
        let running = self.current.1;
        let running = running.and_then(|depth| self.depths.iter().position(|each| *each == depth));
        let count = columns.saturating_sub(width + 1) / CELL_COLUMNS;
        let shown = window(self.depths.len(), running.unwrap_or(0), count);
        let depths = &self.depths[shown];
        let header: String = depths
            .iter()
            .map(|depth| format!("{depth:>CELL_COLUMNS$}"))
            .collect();
        let mut lines = vec![format!("{:<width$}{header}", "depth")];
        let most = ROWS_MAX.min(rows - 1);
        let last = self.curves.len() - 1;
        // Curves follow each other, so the current one is the last, except in an exhaustive sweep.
        let shown = match self.current.0 + most > last {
            true => window(last + 1, last, most),
            false => window(last + 1, self.current.0, most),
        };
        for index in shown {
            let (name, (_, cells)) = (&names[index], &self.curves[index]);
            let cells = depths
                .iter()
                .map(|depth| self.cell(index, *depth, cells, shades));
            let name = label(name, width);
            let line = format!("{name:<width$}{}", cells.collect::<String>());
            lines.push(line.trim_end().to_owned());
        }
        lines
    }

    fn cell(
        &self,
        curve: usize,
        depth: u32,
        cells: &BTreeMap<u32, ShadedCell>,
        shades: [char; 5],
    ) -> String {
        let text = match cells.get(&depth) {
            _ if self.current == (curve, Some(depth)) => ">".to_owned(),
            Some(cell) => shades[shade(cell.iops, self.highest(cell.io_bytes))]
                .to_string()
                .repeat(2),
            None => String::new(),
        };
        format!("{text:>CELL_COLUMNS$}")
    }

    /// Highest rate of all cells with I/Os of this size.
    fn highest(&self, io_bytes: u64) -> f64 {
        let cells = self.curves.iter().flat_map(|(_, cells)| cells.values());
        let equal = cells.filter(|cell| cell.io_bytes == io_bytes);
        equal.map(|cell| cell.iops).fold(0.0, f64::max)
    }
}

/// Range of at most `count` of `all` items that contains an item, in its middle if possible.
fn window(all: usize, item: usize, count: usize) -> Range<usize> {
    let count = count.clamp(1, all.max(1));
    let start = item
        .saturating_sub(count / 2)
        .min(all.saturating_sub(count));
    start..(start + count).min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid of two block sizes, of which a part is measured.
    fn filling() -> FillingGrid {
        let axis = |name: &str, values: &[&str]| Axis {
            name: name.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let axes = [
            axis("bs", &["4k", "1m"]),
            axis("iodepth", &["1", "8", "64"]),
        ];
        let mut heat = FillingGrid::new(&axes);
        let cells = |io_bytes: u64, rates: &[(u32, f64)]| {
            let cell = |(depth, iops): &(u32, f64)| {
                (
                    *depth,
                    ShadedCell {
                        iops: *iops,
                        io_bytes,
                    },
                )
            };
            rates
                .iter()
                .map(cell)
                .collect::<BTreeMap<u32, ShadedCell>>()
        };
        heat.curves = vec![
            (
                vec!["4k".to_owned()],
                cells(4096, &[(1, 1e3), (8, 6e3), (64, 1e4)]),
            ),
            (vec!["1m".to_owned()], cells(1 << 20, &[(1, 100.0)])),
        ];
        heat.current = (1, Some(8));
        heat
    }

    #[test]
    fn curve_name_holds_axes_with_several_values() {
        let axes = &filling().axes;
        assert_eq!(unit_name(axes, &["1m".to_owned()]), "1m");
        let jobs = Axis {
            name: "numjobs".to_owned(),
            values: vec!["1".to_owned(), "4".to_owned()],
        };
        assert_eq!(unit_name(&[jobs], &["4".to_owned()]), "4 jobs");
        assert_eq!(unit_name(&axes[1..], &[]), "");
    }

    #[test]
    fn heat_table_shows_measured_and_running_cells() {
        let lines = filling().lines(80, 24, TextStyle::PLAIN);
        assert_eq!(
            lines,
            ["depth   1   8  64", "4k     ..  --  ##", "1m     ##   >"]
        );
        assert_eq!(filling().lines(120, 40, TextStyle::PLAIN), lines);
    }

    #[test]
    fn heat_table_fits_40_columns() {
        let mut heat = filling();
        heat.curves[0].0 = vec!["a-very-long-name-of-a-target/".repeat(3)];
        let lines = heat.lines(40, 10, TextStyle::PLAIN);
        assert!(
            lines.iter().all(|line| line.chars().count() < 40),
            "{lines:?}"
        );
        assert!(
            lines[1].starts_with("...") && lines[1].ends_with("/  ..  --  ##"),
            "{lines:?}"
        );
    }

    #[test]
    fn heat_table_of_many_curves_keeps_the_last() {
        let mut heat = filling();
        let added = (0..30).map(|number| (vec![format!("{number}k")], BTreeMap::new()));
        heat.curves.extend(added);
        heat.current = (31, Some(1));
        let lines = heat.lines(80, 24, TextStyle::PLAIN);
        assert_eq!(lines.len(), ROWS_MAX + 1, "{lines:?}");
        assert!(lines[ROWS_MAX].starts_with("29k"), "{lines:?}");
        let low = heat.lines(80, 5, TextStyle::PLAIN);
        assert_eq!(low.len(), 5, "{low:?}");
        assert!(low[4].starts_with("29k"), "{low:?}");
        // An exhaustive sweep returns to earlier curves.
        heat.current = (1, Some(8));
        let low = heat.lines(80, 5, TextStyle::PLAIN);
        assert!(low.iter().any(|line| line.contains('>')), "{low:?}");
        assert!(heat.lines(80, 1, TextStyle::PLAIN).is_empty());
    }

    #[test]
    fn heat_table_of_many_depths_keeps_those_near_the_cell_that_runs() {
        let mut heat = filling();
        heat.depths = (0..10).map(|power| 1 << power).collect();
        heat.current = (1, Some(256));
        let lines = heat.lines(40, 10, TextStyle::PLAIN);
        assert_eq!(
            lines[0], "depth   4   8  16  32  64 128 256 512",
            "{lines:?}"
        );
        assert!(lines[2].ends_with(">"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() < 40));
    }
}
