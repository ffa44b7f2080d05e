//! Note on cells whose runs show that the target changed during the sweep.

use super::sweep_study::SweepStudy;
use crate::driver::StudyDriver;
use crate::figures::cell::CHANGE_RATIO_MIN;
use iosonde_result::words;

impl SweepStudy<'_> {
    /// Names the cell whose runs differ most, and counts the others. The records of a resumed sweep
    /// count, too.
    pub(super) fn note_changed_cells(&self, driver: &mut StudyDriver<'_>) {
        let ratio = |(slowest, fastest): (f64, f64)| fastest / slowest.max(f64::MIN_POSITIVE);
        let logs = self.curves.iter().map(|progress| &progress.log);
        let changed = logs.flat_map(|log| {
            let records = log.so_far.records.iter();
            records.filter_map(move |record| Some((log, record, record.changed_rates()?)))
        });
        let changed: Vec<_> = changed.collect();
        let most = changed
            .iter()
            .max_by(|a, b| ratio(a.2).total_cmp(&ratio(b.2)));
        if let Some((log, record, rates)) = most
            && let Some(name) = log.name_of(record)
        {
            let others = changed.len() - 1;
            driver.note(change_note(&name, (record.runs(), *rates), others));
        }
    }
}

/// Describes the change of a cell, from the rates of its slowest and its fastest run. `others`:
/// number of other cells that changed.
fn change_note(name: &str, (runs, rates): (u32, (f64, f64)), others: usize) -> String {
    let (slowest, fastest) = (words::iops_text(rates.0), words::iops_text(rates.1));
    let others = match others {
        0 => String::new(),
        _ => format!(
            ", and those of {} differed by a factor of {CHANGE_RATIO_MIN} or more",
            words::counted(others, "more cell")
        ),
    };
    format!(
        "{name}: the {runs} runs of this cell had {slowest} to {fastest} IOPS{others}; the target \
         changed during the sweep, so rates measured at different times are not comparable"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_on_a_change_has_its_figures() {
        let runs = (3, (68.2, 514.0));
        assert_eq!(
            change_note("depth 4", runs, 0),
            "depth 4: the 3 runs of this cell had 68 to 514 IOPS; the target changed during the \
             sweep, so rates measured at different times are not comparable"
        );
        let several = change_note("4k, depth 4", runs, 2);
        assert!(
            several.starts_with(
                "4k, depth 4: the 3 runs of this cell had 68 to 514 IOPS, and those of 2 more \
                 cells differed by a factor of 2 or more; the target changed"
            ),
            "{several}"
        );
        assert!(change_note("depth 4", runs, 1).contains(" of 1 more cell differed by "));
    }
}
