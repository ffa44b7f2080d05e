//! Progress of a sweep: its grid as a heat table that fills, the running cell, and a line per curve
//! or cell. Records the results in the journal.

use super::activity::LiveActivity;
use super::study_view::{StudyExtent, StudySteps, StudyView};
use crate::journal::sweep_journal::SweepJournal;
use crate::output::{Output, locale_style};
use crate::terminal_text::TerminalSize;
use iosonde_report::sweep::{FillingGrid, announced, cell_line, curve_line, unit_name};
use iosonde_study::sweep::{SweepResult, quiet_wait_max};
use iosonde_study::{Announcement, StudyEvent, StudyFinding, StudyStep, TimeRange};

/// Shows a sweep on standard error, and records its results in the journal.
pub(crate) type SweepLive = StudyView<SweepSteps>;

/// The grid of a sweep, and the units that are complete.
#[derive(Default)]
pub(crate) struct SweepSteps {
    journal: Option<SweepJournal>,
    grid: FillingGrid,
    title: String,
    is_cell: bool,
    /// Number of units that were complete before the first one started here.
    units_before: Option<usize>,
    /// Number of units that ended since then, and number of those left.
    units_done: usize,
    units_left: usize,
}

impl SweepLive {
    /// Sets the journal that records progress.
    pub(crate) fn journal(&mut self, journal: SweepJournal) {
        self.steps.journal = Some(journal);
    }

    /// Removes the journal of a complete sweep.
    pub(crate) fn forget(&mut self) {
        if let Some(journal) = self.steps.journal.take() {
            journal.remove();
        }
    }

    /// Removes the journal of a sweep that ended without a result, if the journal is empty.
    pub(crate) fn give_up(&mut self) {
        if let Some(journal) = self.steps.journal.take_if(|journal| journal.is_empty()) {
            journal.remove();
        }
    }

    /// Takes the journal.
    pub(crate) fn written_down(&mut self) -> Option<SweepJournal> {
        self.steps.journal.take()
    }

    /// Removes the journal of a complete sweep. If the sweep is incomplete, or has more to do for
    /// another reason, prints how to resume it.
    pub(crate) fn conclude(&mut self, result: &SweepResult, has_more: bool) {
        if !has_more && result.is_at_its_end() {
            return self.forget();
        }
        let journal = self.steps.journal.take();
        if journal.is_some_and(|journal| journal.is_kept()) {
            self.line("to continue, run the same command with --resume");
        }
    }
}

impl StudySteps for SweepSteps {
    fn announce(&mut self, announcement: &Announcement<'_>, _is_live: bool) -> Option<StudyExtent> {
        let Announcement::Sweep(extent) = announcement else {
            return None;
        };
        self.grid = FillingGrid::new(extent.axes);
        let mut lines = announced(extent, &super::overwrite_warning);
        lines.push(
            "Ctrl-C stops and prints the results so far; --resume continues from there".to_owned(),
        );
        let targets = extent.targets.iter();
        let names: Vec<&str> = targets.clone().map(|target| target.name.as_str()).collect();
        let waiting = TimeRange {
            least_ns: 0,
            most_ns: quiet_wait_max(extent.planned.most_ns).as_nanos() as u64,
        };
        Some(StudyExtent {
            lines,
            name: names.join(", "),
            activity: LiveActivity::observe(
                targets.map(|target| (target.name.as_str(), target.path.as_str(), &target.kind)),
            ),
            planned: extent.planned + waiting,
        })
    }

    fn begin(&mut self, step: StudyStep<'_>) -> String {
        self.is_cell = matches!(step, StudyStep::Unit { .. });
        match step {
            StudyStep::Layout { target } => {
                self.title = format!("{target}: writing the working set");
            }
            StudyStep::Unit { done, units, plan } => {
                let name = unit_name(self.grid.axes(), &plan.values);
                let name = if name.is_empty() {
                    "curve"
                } else {
                    name.as_str()
                };
                self.title = format!("[{}/{units}] {name}", done + 1);
                self.grid.begin_curve(plan);
                let before = *self.units_before.get_or_insert(done);
                (self.units_done, self.units_left) = (done - before, units - done);
            }
            _ => {}
        }
        self.title.clone()
    }

    fn is_bandwidth(&self) -> bool {
        !self.is_cell
    }

    fn is_timed(&self, step: StudyStep<'_>) -> bool {
        matches!(step, StudyStep::Unit { .. })
    }

    fn corrected(&self, left: TimeRange, elapsed_ns: u64) -> TimeRange {
        // The mean time per unit includes preparation and waiting between runs.
        let each_ns = elapsed_ns.checked_div(self.units_done as u64);
        let by_clock_ns = each_ns.map_or(0, |ns| ns * self.units_left as u64);
        TimeRange {
            least_ns: left.least_ns.max(by_clock_ns),
            most_ns: left.most_ns.max(by_clock_ns),
        }
    }

    fn cell(&mut self, event: &StudyEvent<'_>) -> Option<String> {
        match *event {
            StudyEvent::CellStarted { iodepth, .. } => {
                self.grid.begin_cell(iodepth);
                return Some(format!("{} depth {iodepth}", self.title));
            }
            StudyEvent::Recorded {
                curve,
                record,
                spent_ns,
            } => {
                self.grid.record(&record.cell());
                if let Some(journal) = &mut self.journal {
                    journal.write(curve, record, spent_ns, &mut |note| eprintln!("{note}"));
                }
            }
            _ => {}
        }
        None
    }

    fn found(&mut self, finding: StudyFinding<'_>) -> Option<String> {
        match finding {
            StudyFinding::Curve {
                plan,
                saturation,
                is_again,
            } => {
                let axes = self.grid.axes();
                // The view has the characters of the same locale.
                let plus_minus = locale_style(false).plus_minus();
                Some(curve_line(axes, plan, (saturation, is_again), plus_minus))
            }
            StudyFinding::Cell { plan, record } => Some(cell_line(self.grid.axes(), plan, record)),
            _ => None,
        }
    }

    fn rows(&self, room: TerminalSize) -> Vec<String> {
        let style = Output::Standard.style();
        self.grid.lines(room.columns, room.rows, style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_counts_the_pace_of_units() {
        let steps = SweepSteps {
            units_done: 2,
            units_left: 3,
            ..SweepSteps::default()
        };
        let left = TimeRange::from_steps(1, 2, 1_000_000_000);
        let corrected = steps.corrected(left, 20_000_000_000);
        assert_eq!(corrected.most_ns, 30_000_000_000);
        assert_eq!(SweepSteps::default().corrected(left, 0), left);
    }
}
