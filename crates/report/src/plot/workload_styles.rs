//! Colours and line styles of the workloads of a single subject: each has one in all charts.

use super::depth_lines::depth_patterns;
use super::figure_rows::{DrawnRows, figure_rows};
use super::plot_input::PlotInput;
use super::series_style::{SERIES_MAX, SeriesStyle};

/// Names of the workloads of a call, by the charts that draw them. All charts assign styles in
/// their order, so that a name has one style. `workloadStyles` of the page has the same order.
#[derive(Debug, Default)]
pub(super) struct WorkloadNames(Vec<Vec<String>>);

impl WorkloadNames {
    /// The rows that charts of latency draw, the lines over depth, and all other rows.
    pub(super) fn from_input(input: &PlotInput) -> WorkloadNames {
        let rows = || figure_rows(&input.report, &input.subjects);
        let drawn = DrawnRows::choose(rows()).rows.into_iter();
        let all = rows().into_iter();
        WorkloadNames(vec![
            drawn.map(|row| row.phase).collect(),
            depth_patterns(input),
            all.map(|row| row.phase).collect(),
        ])
    }

    /// Returns the style of each name. `drawn` are the names of a chart: those that no other chart
    /// has are the last ones.
    pub(super) fn styles<'a>(&'a self, drawn: &[&'a str]) -> Vec<(&'a str, SeriesStyle)> {
        let charts = self.0.iter();
        let charts = charts.map(|names| names.iter().map(String::as_str).collect::<Vec<&str>>());
        let charts: Vec<Vec<&str>> = charts.chain([drawn.to_vec()]).collect();
        let mut styles: Vec<(&str, SeriesStyle)> = Vec::new();
        for names in charts {
            for name in &names {
                if styles.iter().all(|(known, _)| known != name) {
                    styles.push((*name, free_style(&styles, &names)));
                }
            }
        }
        styles
    }
}

/// A style that no workload has. Its colour is one that no workload of the chart `names` has, if
/// there is one.
fn free_style(styles: &[(&str, SeriesStyle)], names: &[&str]) -> SeriesStyle {
    let of_chart = styles.iter().filter(|(known, _)| names.contains(known));
    let taken: Vec<usize> = of_chart.map(|(_, style)| style.slot).collect();
    let free = (0..SERIES_MAX).find(|slot| !taken.contains(slot));
    let slot = free.unwrap_or(taken.len() % SERIES_MAX);
    let all = (0..SERIES_MAX).map(|step| SeriesStyle {
        slot,
        dash: (slot + step) % SERIES_MAX,
    });
    let mut unused = all.filter(|style| styles.iter().all(|(_, known)| known != style));
    unused.next().unwrap_or(SeriesStyle { slot, dash: slot })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(slot: usize, dash: usize) -> SeriesStyle {
        SeriesStyle { slot, dash }
    }

    #[test]
    fn workload_has_one_style_in_all_charts() {
        let rows = ["read, depth 1", "read", "stream", "flush", "write", "log"];
        let depths = ["read", "write", "write, 2 jobs"];
        let names = [rows.as_slice(), depths.as_slice()];
        let owned = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let names = WorkloadNames(names.map(owned).to_vec());
        for drawn in [rows.as_slice(), depths.as_slice(), &["write", "fill"]] {
            let styles = names.styles(drawn);
            assert_eq!(styles[1], ("read", style(1, 1)));
            assert_eq!(styles[4], ("write", style(4, 4)));
            // Blue is the colour of `read, depth 1`, which no chart over depth has.
            assert_eq!(styles[6], ("write, 2 jobs", style(0, 1)));
        }
        let fill = names.styles(&["write", "fill"]);
        assert_eq!(fill[7], ("fill", style(0, 2)));
    }

    #[test]
    fn seventh_workload_of_a_chart_has_another_line_style() {
        let rows = ["a", "b", "c", "d", "e", "f", "g"];
        let names = WorkloadNames::default();
        let styles = names.styles(&rows);
        assert_eq!((styles[0].1, styles[6].1), (style(0, 0), style(0, 1)));
    }
}
