//! [`TargetsView`]: one view of several targets that take turns, with a line per target.

use super::run_number::RunNumber;
use super::screen::Screen;
use crate::live::view::{LiveView, StepRow, activity_line, head_line};
use crate::live::view_lines::ViewLines;
use iosonde_report::probe::row;
use iosonde_report::probe::short_report::target_letter;
use iosonde_study::TimeRange;
use iosonde_study::probe::{PhaseFigure, ProbePhase};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The view that the probes of several targets share.
#[derive(Clone)]
pub(crate) struct TargetsView(Arc<Mutex<TargetRows>>);

/// Progress of all targets.
struct TargetRows {
    view: LiveView,
    /// `2 targets in turns`, and the number of the run.
    title: String,
    rows: Vec<TargetProgress>,
}

/// Progress of one target.
#[derive(Debug, Clone, Default, PartialEq)]
struct TargetProgress {
    name: String,
    /// Title of the step without its depth.
    step: String,
    rate: String,
    known: String,
    /// `None` before the announcement.
    times: Option<TargetTimes>,
    has_failed: bool,
    figures: Vec<TargetFigure>,
}

/// Times of one target.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct TargetTimes {
    /// Time left in this run.
    left: TimeRange,
    /// Time of this run at its announcement.
    whole: TimeRange,
    /// Time of the runs that follow.
    following: TimeRange,
}

/// Mean rate of a phase, and half its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TargetFigure {
    phase: ProbePhase,
    iops: f64,
    error: Option<f64>,
}

impl TargetFigure {
    /// Share by which this rate exceeds another one at least. `None` if the intervals overlap.
    fn lead(&self, other: &TargetFigure) -> Option<f64> {
        let (low, high) = (self.iops - self.error?, other.iops + other.error?);
        (low > high && high > 0.0).then(|| low / high - 1.0)
    }
}

impl TargetProgress {
    fn complete(&mut self) {
        if self.has_failed {
            return;
        }
        self.times = Some(TargetTimes {
            left: TimeRange::default(),
            ..self.times.unwrap_or_default()
        });
        self.step = "done".to_owned();
    }

    fn fail(&mut self) {
        self.has_failed = true;
        self.step = "failed".to_owned();
    }
}

impl TargetsView {
    /// Creates the view of targets with these names.
    pub(crate) fn new(names: &[String], run: RunNumber) -> TargetsView {
        let row = |name: &String| TargetProgress {
            name: name.clone(),
            ..TargetProgress::default()
        };
        TargetsView(Arc::new(Mutex::new(TargetRows {
            view: LiveView::new(),
            title: format!("{} targets in turns{}", names.len(), run.words()),
            rows: names.iter().map(row).collect(),
        })))
    }

    fn targets(&self) -> MutexGuard<'_, TargetRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the line of the target `index`, which runs.
    pub(super) fn update(&self, index: usize, screen: &Screen, is_news: bool) {
        let mut targets = self.targets();
        let TargetRows { view, title, rows } = &mut *targets;
        let Some(row) = rows.get_mut(index) else {
            return;
        };
        if let Some((step, rate, known)) = screen.current() {
            (row.step, row.rate) = (step, rate.to_owned());
            known.clone_into(&mut row.known);
        }
        let left = screen.left_in_run();
        row.times = Some(TargetTimes {
            left,
            whole: row.times.map_or(left, |times| times.whole),
            following: screen.following(),
        });
        let now = screen.activity();
        view.redraw(is_news, |room| {
            lines((title.as_str(), rows.as_slice()), index, now, room.columns)
        });
    }

    /// Records a figure of the target `index`.
    pub(super) fn figure(&self, index: usize, figure: &PhaseFigure) {
        if let Some(row) = self.targets().rows.get_mut(index) {
            row.figures.push(TargetFigure {
                phase: figure.phase,
                iops: figure.iops.mean,
                error: figure.iops.error,
            });
        }
    }

    /// Records that the target `index` has failed. No run follows this one.
    pub(super) fn fail(&self, index: usize) {
        if let Some(row) = self.targets().rows.get_mut(index) {
            row.fail();
        }
    }

    /// Records that the target `index` is complete in this run, unless it has failed.
    pub(super) fn complete(&self, index: usize) {
        if let Some(row) = self.targets().rows.get_mut(index) {
            row.complete();
        }
    }

    /// Whether the target `index` is shown as failed.
    #[cfg(test)]
    pub(crate) fn has_failed(&self, index: usize) -> bool {
        self.targets()
            .rows
            .get(index)
            .is_some_and(|row| row.has_failed)
    }

    /// Removes the view.
    pub(crate) fn clear(&self) {
        self.targets().view.clear();
    }
}

/// Lines of the view.
fn lines(
    (title, rows): (&str, &[TargetProgress]),
    current: usize,
    now: &[String],
    columns: usize,
) -> ViewLines {
    let head = head_line(title, &time_left(rows).words(), columns);
    let mut steps = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let title = format!("{} {}", target_letter(index), row.name);
        let parts = [row.known.as_str(), row.step.as_str()];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let known = parts.collect::<Vec<&str>>().join(", ");
        let step = StepRow {
            title: &title,
            rate: &row.rate,
            known: &known,
        };
        steps.push(match index == current {
            true => step.running(None, "", columns),
            false => step.resting(columns),
        });
    }
    steps.extend(leader(rows));
    ViewLines {
        head,
        steps,
        current,
        activity: vec![activity_line(now, columns)],
    }
}

/// Time left of all targets, with the runs that follow. A target that has failed takes no time, and
/// no run follows the run in which it failed.
fn time_left(rows: &[TargetProgress]) -> TimeRange {
    let has_failed = rows.iter().any(|row| row.has_failed);
    let announced = rows.iter().find_map(|row| row.times).unwrap_or_default();
    // A target that has not begun takes as long as the others.
    let usual = TargetTimes {
        left: announced.whole,
        ..announced
    };
    let running = rows.iter().filter(|row| !row.has_failed);
    let left = running.map(|row| {
        let times = row.times.unwrap_or(usual);
        match has_failed {
            true => times.left,
            false => times.left + times.following,
        }
    });
    left.fold(TimeRange::default(), |sum, each| sum + each)
}

/// Compares the targets by the last phase that all have completed. Names the leading target only if
/// its interval lies above those of all others.
fn leader(rows: &[TargetProgress]) -> Option<String> {
    let figures_of = |phase: ProbePhase| -> Option<Vec<&TargetFigure>> {
        let is_of = |figure: &&TargetFigure| figure.phase == phase;
        rows.iter()
            .map(|row| row.figures.iter().rfind(is_of))
            .collect()
    };
    let mut phases = rows.first()?.figures.iter().rev();
    let of_all = |figure: &TargetFigure| Some((figure.phase, figures_of(figure.phase)?));
    let (phase, figures) = phases.find_map(of_all)?;
    let numbered = || figures.iter().enumerate();
    let (best, most) = numbered().max_by(|a, b| a.1.iops.total_cmp(&b.1.iops))?;
    let others = numbered().filter(|(index, _)| *index != best);
    let leads: Option<Vec<f64>> = others.map(|(_, other)| most.lead(other)).collect();
    let least = leads.map(|leads| leads.into_iter().fold(f64::INFINITY, f64::min));
    let title = row::planned(phase);
    Some(match least {
        Some(lead) if lead.is_finite() => format!(
            "{title}: {} {} leads in this run by at least {:.0} %",
            target_letter(best),
            rows[best].name,
            (lead * 100.0).floor()
        ),
        _ => format!("{title}: no target leads for certain"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::probe_live::ProbeLive;
    use crate::signals::StopSignal;

    fn target(name: &str, iops: f64, error: f64) -> TargetProgress {
        let second = 1_000_000_000;
        let whole = TimeRange::from_steps(60, 60, second);
        TargetProgress {
            name: name.to_owned(),
            step: "1M sequential read".to_owned(),
            rate: "3.17 GiB/s".to_owned(),
            known: "+- 0.3 %".to_owned(),
            times: Some(TargetTimes {
                left: TimeRange::from_steps(20, 20, second),
                whole,
                following: TimeRange::default(),
            }),
            has_failed: false,
            figures: vec![TargetFigure {
                phase: ProbePhase::RandomRead,
                iops,
                error: Some(error),
            }],
        }
    }

    const TITLE: &str = "2 targets in turns, run 2 of 5";

    #[test]
    fn target_lines_fit_each_width() {
        let rows = [target("/srv/a", 120e3, 2e3), target("/srv/b", 100e3, 2e3)];
        let now = ["3.20 GiB/s".to_owned()];
        let shown = lines((TITLE, &rows[..]), 1, &now, 80).fitted(24);
        assert_eq!(
            shown,
            [
                "2 targets in turns, run 2 of 5  about 40 s left, Ctrl-C stops early",
                "  A /srv/a                     3.17 GiB/s   +- 0.3 %, 1M sequential read",
                "> B /srv/b                     3.17 GiB/s   +- 0.3 %, 1M sequential read",
                "4k random read, depth 64: A /srv/a leads in this run by at least 15 %",
                "now 3.20 GiB/s",
            ]
        );
        assert_eq!(lines((TITLE, &rows[..]), 1, &now, 120).fitted(40), shown);
        let narrow = lines((TITLE, &rows[..]), 1, &now, 40).fitted(8);
        assert_eq!(narrow[2], "> B /srv/b           3.17 GiB/s");
        let begun = TargetProgress::default();
        let waiting = lines((TITLE, &[rows[0].clone(), begun][..]), 0, &now, 80).fitted(24);
        assert!(
            waiting[0].contains("  about 1 min 20 s left"),
            "{waiting:?}"
        );
    }

    /// Two targets with 20 s left in this run. The runs that follow take each of them 180 s.
    fn repeated_targets() -> [TargetProgress; 2] {
        let following = TimeRange::from_steps(180, 180, 1_000_000_000);
        [target("/srv/a", 120e3, 2e3), target("/srv/b", 100e3, 2e3)].map(|mut target| {
            if let Some(times) = &mut target.times {
                times.following = following;
            }
            target
        })
    }

    fn shown(rows: &[TargetProgress]) -> Vec<String> {
        lines((TITLE, rows), 1, &[], 80).fitted(24)
    }

    #[test]
    fn completed_target_keeps_time_of_following_runs() {
        let mut rows = repeated_targets();
        rows[0].complete();
        let repeated = shown(&rows);
        assert!(
            repeated[0].contains("  about 6 min 20 s left"),
            "{repeated:?}"
        );
        assert!(repeated[1].ends_with(", done"), "{repeated:?}");
        let mut rows = [target("/srv/a", 120e3, 2e3), target("/srv/b", 100e3, 2e3)];
        rows[0].complete();
        let single = shown(&rows);
        assert!(single[0].contains("  about 20 s left"), "{single:?}");
    }

    /// The command ends after a run in which a target failed.
    #[test]
    fn failed_target_ends_time_of_following_runs() {
        let mut rows = repeated_targets();
        rows[0].fail();
        // The display of the target ends after the failure.
        rows[0].complete();
        let failed = shown(&rows);
        assert!(failed[0].contains("  about 20 s left"), "{failed:?}");
        assert!(failed[1].ends_with(", failed"), "{failed:?}");
    }

    #[test]
    fn target_that_fails_before_its_announcement_takes_no_time() {
        let mut rows = repeated_targets();
        rows[0] = TargetProgress {
            name: "/srv/a".to_owned(),
            ..TargetProgress::default()
        };
        rows[0].fail();
        let failed = shown(&rows);
        assert!(failed[0].contains("  about 20 s left"), "{failed:?}");
        assert!(failed[1].ends_with(" failed"), "{failed:?}");
    }

    /// The turns of the other targets go on.
    #[test]
    fn target_that_has_not_begun_takes_its_whole_run_after_a_failure() {
        let [a, mut b] = repeated_targets();
        b.fail();
        let rows = [a, b, TargetProgress::default()];
        let waiting = shown(&rows);
        assert!(
            waiting[0].contains("  about 1 min 20 s left"),
            "{waiting:?}"
        );
    }

    #[test]
    fn interrupted_target_is_not_shown_as_failed() {
        let names = ["/srv/a", "/srv/b"].map(str::to_owned);
        let view = TargetsView::new(&names, RunNumber::default());
        let stop = StopSignal::default();
        let live = [0, 1].map(|index| ProbeLive::of_several(index, view.clone(), stop.clone()));
        live[0].fail();
        stop.interrupt.request();
        live[1].fail();
        assert_eq!([0, 1].map(|index| view.has_failed(index)), [true, false]);
    }

    #[test]
    fn leader_is_named_only_if_intervals_are_apart() {
        let leading = leader(&[target("/a", 100e3, 2e3), target("/b", 120e3, 2e3)]);
        assert_eq!(
            leading.as_deref(),
            Some("4k random read, depth 64: B /b leads in this run by at least 15 %")
        );
        let equal = leader(&[target("/a", 100e3, 2e3), target("/b", 103e3, 2e3)]);
        let words = "4k random read, depth 64: no target leads for certain";
        assert_eq!(equal.as_deref(), Some(words));
        let mut unknown = target("/b", 900e3, 1.0);
        unknown.figures[0].error = None;
        let rows = [target("/a", 100e3, 2e3), unknown.clone()];
        assert_eq!(leader(&rows).as_deref(), Some(words));
        unknown.figures.clear();
        assert_eq!(leader(&[target("/a", 100e3, 2e3), unknown]), None);
    }
}
