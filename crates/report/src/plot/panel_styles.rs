//! Colours and line styles of series: a subject, or each workload of a single subject, has one
//! colour in all charts of a call.

use super::plot_input::PlotInput;
use super::series_style::{SERIES_MAX, SeriesKey, SeriesStyle};
use super::workload_styles::WorkloadNames;
use crate::unique;

/// Returns the styles of the series of each panel. Of a single subject, each workload has one
/// style. Of several subjects, each has one colour, and the line style stands for the workload if a
/// panel has several.
pub(super) fn panel_styles(
    input: &PlotInput,
    panels: &[Vec<SeriesKey<'_>>],
) -> Vec<Vec<SeriesStyle>> {
    let all_subjects = input.all_subjects();
    if all_subjects.len() < 2 {
        return workload_styles(&WorkloadNames::from_input(input), panels);
    }
    subject_styles(&all_subjects, panels)
}

/// Styles of the series of each panel of several subjects, which are `all_subjects`.
fn subject_styles(all_subjects: &[String], panels: &[Vec<SeriesKey<'_>>]) -> Vec<Vec<SeriesStyle>> {
    let number_of = |subject: &str| {
        let known = all_subjects.iter().position(|known| known == subject);
        known.unwrap_or(all_subjects.len())
    };
    let of_chart = workloads(panels.iter().flatten());
    let styles = panels.iter().map(|panel| {
        let of_panel = workloads(panel);
        // A workload has one line style in all panels if there are enough.
        let among = match of_chart.len() <= SERIES_MAX {
            true => &of_chart,
            false => &of_panel,
        };
        let style = |(subject, workload): &SeriesKey<'_>| {
            let style = SeriesStyle::numbered(number_of(subject));
            if of_panel.len() < 2 {
                return style;
            }
            let dash = among.iter().position(|known| known == workload);
            SeriesStyle {
                // Colours recur with other line styles, as in `dashOf` of the page.
                dash: (dash.unwrap_or_default() + number_of(subject) / SERIES_MAX) % SERIES_MAX,
                ..style
            }
        };
        distinct_styles(panel.iter().map(style))
    });
    styles.collect()
}

/// Replaces the line style of a series if another series of the panel has it in the same colour:
/// there are more subjects than colours, each with several workloads, or several runs of one
/// workload of a single subject.
fn distinct_styles(styles: impl Iterator<Item = SeriesStyle>) -> Vec<SeriesStyle> {
    let mut taken: Vec<SeriesStyle> = Vec::new();
    for style in styles {
        let mut others = (0..SERIES_MAX).map(|step| SeriesStyle {
            dash: (style.dash + step) % SERIES_MAX,
            ..style
        });
        let free = others.find(|other| !taken.contains(other));
        taken.push(free.unwrap_or(style));
    }
    taken
}

/// Returns the styles of a chart with one panel.
pub(super) fn series_styles(input: &PlotInput, keys: Vec<SeriesKey<'_>>) -> Vec<SeriesStyle> {
    let mut panels = panel_styles(input, &[keys]);
    panels.pop().unwrap_or_default()
}

/// Styles of the series of each panel of a single subject.
fn workload_styles(names: &WorkloadNames, panels: &[Vec<SeriesKey<'_>>]) -> Vec<Vec<SeriesStyle>> {
    let known = names.styles(&workloads(panels.iter().flatten()));
    let style_of = |workload: &str| {
        let mut styles = known.iter();
        let found = styles.find(|(name, _)| *name == workload);
        found.map_or(SeriesStyle::numbered(0), |(_, style)| *style)
    };
    let styles = panels.iter().map(|panel| {
        let styles = panel.iter().map(|(_, workload)| style_of(workload));
        distinct_styles(styles)
    });
    styles.collect()
}

fn workloads<'a>(keys: impl IntoIterator<Item = &'a SeriesKey<'a>>) -> Vec<&'a str> {
    unique(keys.into_iter().map(|(_, workload)| *workload))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(styles: &[SeriesStyle]) -> Vec<usize> {
        styles.iter().map(|style| style.slot).collect()
    }

    fn dashes(styles: &[SeriesStyle]) -> Vec<usize> {
        styles.iter().map(|style| style.dash).collect()
    }

    #[test]
    fn subject_has_one_colour_in_all_panels() {
        let all = ["a", "b", "c"].map(str::to_owned);
        let panels = [
            vec![("a", "small"), ("b", "small"), ("c", "small")],
            vec![("c", "large"), ("b", "large")],
        ];
        let styles = subject_styles(&all, &panels);
        assert_eq!(slots(&styles[0]), [0, 1, 2]);
        assert_eq!(slots(&styles[1]), [2, 1]);
        assert_eq!(dashes(&styles[1]), [2, 1], "lines differ without colours");
    }

    #[test]
    fn workloads_of_a_subject_differ_in_line_style() {
        let all = ["a", "b"].map(str::to_owned);
        let keys = vec![("b", "read"), ("b", "write"), ("a", "read")];
        let styles = subject_styles(&all, &[keys]).remove(0);
        assert_eq!(slots(&styles), [1, 1, 0]);
        assert_eq!(dashes(&styles), [0, 1, 0]);
    }

    #[test]
    fn subjects_of_one_colour_differ_in_line_style() {
        let all: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        let keys = vec![("0", "read"), ("6", "read"), ("0", "write"), ("6", "write")];
        let styles = subject_styles(&all, &[keys]).remove(0);
        assert_eq!(slots(&styles), [0, 0, 0, 0]);
        assert_eq!(dashes(&styles), [0, 1, 2, 3]);
    }

    #[test]
    fn series_of_one_subject_are_numbered_through_panels() {
        let panels = [vec![("a", "read"), ("a", "write")], vec![("a", "large")]];
        let styles = workload_styles(&WorkloadNames::default(), &panels);
        assert_eq!(slots(&styles[0]), [0, 1]);
        assert_eq!(slots(&styles[1]), [2]);
    }

    #[test]
    fn runs_of_one_workload_differ_in_line_style() {
        let panels = [vec![("a", "read"), ("a", "read")]];
        let styles = workload_styles(&WorkloadNames::default(), &panels);
        assert_eq!(slots(&styles[0]), [0, 0]);
        assert_eq!(dashes(&styles[0]), [0, 1]);
    }

    #[test]
    fn recurring_colour_has_another_line_style() {
        let (first, seventh) = (SeriesStyle::numbered(0), SeriesStyle::numbered(6));
        assert_eq!(first.slot, seventh.slot);
        assert_ne!(first.dash, seventh.dash);
    }
}
