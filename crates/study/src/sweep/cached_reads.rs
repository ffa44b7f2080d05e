//! Note on the curves whose reads a page cache served.

use super::grid::SweepGrid;
use super::sweep_study::SweepStudy;
use crate::driver::StudyDriver;
use crate::figures::cell::CellRecord;
use crate::figures::curve_plan::CurvePlan;

/// A verdict on cached reads does not state that the cache served all of them.
const CAUTION: &str =
    "a cache served some or all reads, so the figures may not describe the device";
/// Largest number of names in the note. The others are counted.
const NAMES_MAX: usize = 4;

impl SweepStudy<'_> {
    /// Names the curves whose reads a cache served, unless it served those of all curves. The
    /// records of a resumed sweep count, too. A sweep over the working set measures the cache.
    pub(super) fn note_cached_reads(&self, driver: &mut StudyDriver<'_>) {
        if self.options.most_warmup_ns.is_some() {
            return;
        }
        let (mut measured, mut cached) = (Vec::new(), Vec::new());
        for (plan, progress) in self.grid.curves.iter().zip(&self.curves) {
            let records = &progress.log.so_far.records;
            if !records.is_empty() {
                measured.push(plan);
            }
            if records.iter().any(CellRecord::has_cached_reads) {
                cached.push(plan);
            }
        }
        if cached.is_empty() {
            return;
        }
        if cached.len() == measured.len() {
            driver.note(CAUTION.to_owned());
        } else {
            let names = name_curves(self.grid, &cached, &measured);
            driver.note(format!("{names}: {CAUTION}"));
        }
    }
}

/// Names some of the measured curves by their values of one axis, if these distinguish them from
/// the other curves, else by all their values that vary.
fn name_curves(grid: &SweepGrid, some: &[&CurvePlan], measured: &[&CurvePlan]) -> String {
    let texts_of_axis = |axis: usize| {
        let mut values: Vec<&String> = Vec::new();
        for plan in some {
            let value = plan.values.get(axis)?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let has_value = |plan: &&&CurvePlan| {
            let value = plan.values.get(axis);
            value.is_some_and(|value| values.contains(&value))
        };
        let is_exact = measured.iter().filter(has_value).count() == some.len();
        let texts = values.iter().map(|value| grid.axes[axis].value_text(value));
        is_exact.then(|| texts.collect::<Vec<String>>())
    };
    let (mut names, separator) = match (0..grid.axes.len()).find_map(texts_of_axis) {
        Some(texts) => (texts, ", "),
        None => (
            some.iter().map(|plan| name_curve(grid, plan)).collect(),
            "; ",
        ),
    };
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let names = names.join(separator);
    match more {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

fn name_curve(grid: &SweepGrid, plan: &CurvePlan) -> String {
    let pairs = grid.axes.iter().zip(&plan.values);
    let varied = pairs.filter(|(axis, _)| axis.values.len() > 1);
    let texts: Vec<String> = varied.map(|(axis, value)| axis.value_text(value)).collect();
    texts.join(", ")
}
