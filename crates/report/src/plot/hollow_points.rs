//! Hollow points of charts over depth: points without a usable interval.

use super::chart_data::{ChartPanel, PlotPoint};

/// Note on hollow points among filled ones.
const HOLLOW_NOTE: &str = "hollow points: 95 % interval not known, or ±100 % or more";

/// Note on a chart without any interval.
const NO_INTERVAL_NOTE: &str = "no point has a 95 % interval: not known, or ±100 % or more";

/// Returns the note on points without an interval. Hollow points would distinguish nothing if all
/// points of a chart were hollow: they are filled then.
pub(super) fn note_hollow_points(panels: &mut [ChartPanel]) -> Option<String> {
    let hollow = points_mut(panels).filter(|point| point.hollow).count();
    if hollow == 0 {
        return None;
    }
    if hollow < points_mut(panels).count() {
        return Some(HOLLOW_NOTE.to_owned());
    }
    points_mut(panels).for_each(|point| point.hollow = false);
    Some(NO_INTERVAL_NOTE.to_owned())
}

fn points_mut(panels: &mut [ChartPanel]) -> impl Iterator<Item = &mut PlotPoint> {
    let series = panels.iter_mut().flat_map(|panel| &mut panel.series);
    series.flat_map(|series| &mut series.points)
}

#[cfg(test)]
mod tests {
    use super::super::chart_data::SeriesShape;
    use super::super::chart_scales::linear_axis;
    use super::super::series_style::SeriesStyle;
    use super::*;
    use crate::html::document::PageUnit;

    /// The note, and which points are hollow after it.
    fn noted(hollow: [bool; 2]) -> (Option<String>, Vec<bool>) {
        let points = hollow.map(|hollow| PlotPoint {
            hollow,
            ..PlotPoint::new(1.0, Some(1.0))
        });
        let style = SeriesStyle::numbered(0);
        let series = style.series("read".to_owned(), SeriesShape::Dotted, points.to_vec());
        let axis = linear_axis("IOPS", PageUnit::Iops, 1.0);
        let mut panels = [ChartPanel::of_series(axis, vec![series])];
        let note = note_hollow_points(&mut panels);
        let points = points_mut(&mut panels).map(|point| point.hollow);
        (note, points.collect())
    }

    #[test]
    fn chart_of_hollow_points_alone_has_filled_ones() {
        let (note, hollow) = noted([true, true]);
        assert_eq!(note.as_deref(), Some(NO_INTERVAL_NOTE));
        assert_eq!(hollow, [false, false]);
        let (note, hollow) = noted([true, false]);
        assert_eq!(note.as_deref(), Some(HOLLOW_NOTE));
        assert_eq!(hollow, [true, false]);
        assert_eq!(noted([false, false]), (None, vec![false, false]));
    }
}
