//! Charts of results: which charts the results have data for, and the data of each.

use super::chart_data::{ChartData, ChartKind};
use super::plot_input::PlotInput;
use super::shared_timeline::shared_timeline;
use super::{depth_plot, heat_plot, histogram_plot, latency_plot, time_plot, written_plot};
use crate::html::HtmlReportBuilder;
use crate::html::subject_names::{remove_repetitions, run_subjects};

/// Results as the page of a report has them, so that charts and page show the same data.
pub struct PlotSource {
    input: PlotInput,
    title: Option<String>,
}

impl PlotSource {
    /// Takes the results that were added to a report. `title` replaces the titles of all charts.
    #[must_use]
    pub fn new(results: HtmlReportBuilder, title: Option<String>) -> PlotSource {
        let mut report = results.into_page_report(None);
        remove_repetitions(&mut report);
        let subjects = run_subjects(&report);
        PlotSource {
            input: PlotInput { report, subjects },
            title,
        }
    }

    /// Returns the data of a chart. `None` if the results have none for it.
    #[must_use]
    pub fn chart(&self, chart: ChartKind) -> Option<ChartData> {
        let input = &self.input;
        let parts = match chart {
            ChartKind::IopsOverDepth => depth_plot::rate_over_depth(input),
            ChartKind::Latency => latency_plot::latency_plot(input),
            ChartKind::Timeline => {
                shared_timeline(input).or_else(|| time_plot::timeline_plot(input))
            }
            ChartKind::Histogram => histogram_plot::histogram_plot(input),
            ChartKind::Heatmap => heat_plot::heat_plot(input),
            ChartKind::Written => written_plot::written_plot(input),
        }?;
        let mut footer = vec![input.provenance()];
        footer.extend(parts.notes);
        footer.extend(input.missing_subjects(&parts.subjects));
        Some(ChartData {
            chart,
            title: self.title.clone().unwrap_or(parts.title),
            subtitle: input.subtitle(&parts.subjects),
            footer,
            x: parts.x,
            moments: parts.moments,
            panels: parts.panels,
        })
    }

    /// Returns the sources of the results that a chart cannot show together: a heat map shows one
    /// result. Empty if the chart shows all.
    #[must_use]
    pub fn conflicting_results(&self, chart: ChartKind) -> Vec<String> {
        match chart {
            ChartKind::Heatmap => {
                let sources = heat_plot::mapped_sources(&self.input);
                Some(sources)
                    .filter(|sources| sources.len() > 1)
                    .unwrap_or_default()
            }
            ChartKind::IopsOverDepth
            | ChartKind::Latency
            | ChartKind::Timeline
            | ChartKind::Histogram
            | ChartKind::Written => Vec::new(),
        }
    }

    /// Returns the charts that the results have data for.
    #[must_use]
    pub fn charts(&self) -> Vec<ChartData> {
        let all = ChartKind::ALL.into_iter();
        all.filter_map(|chart| self.chart(chart)).collect()
    }
}
