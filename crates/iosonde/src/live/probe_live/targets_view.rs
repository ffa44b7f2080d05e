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
    step: String,
    rate: String,
    known: String,
    /// Time left, and the time at the announcement, both with the runs that follow. `None` before
    /// the announcement.
    times: Option<(TimeRange, TimeRange)>,
    /// Time of the runs that follow.
    following: TimeRange,
    figures: Vec<TargetFigure>,
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
        let whole = self.times.map_or(TimeRange::default(), |(_, whole)| whole);
        self.times = Some((self.following, whole));
        self.step = "done".to_owned();
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
        let left = screen.left();
        row.times = Some((left, row.times.map_or(left, |(_, whole)| whole)));
        row.following = screen.following();
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

    /// Records that the target `index` is complete in this run.
    pub(super) fn complete(&self, index: usize) {
        if let Some(row) = self.targets().rows.get_mut(index) {
            row.complete();
        }
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
    let announced = rows.iter().find_map(|row| row.times);
    // A target that has not begun takes as long as the others.
    let usual = announced.map_or(TimeRange::default(), |(_, whole)| whole);
    let left = rows
        .iter()
        .map(|row| row.times.map_or(usual, |(left, _)| left));
    let left = left.fold(TimeRange::default(), |sum, each| sum + each);
    let head = head_line(title, &left.words(), columns);
    let mut steps = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let title = format!("{} {}", target_letter(index), row.name);
        let step = row.step.split(',').next().unwrap_or_default();
        let parts = [row.known.as_str(), step];
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

    fn target(name: &str, iops: f64, error: f64) -> TargetProgress {
        let second = 1_000_000_000;
        let whole = TimeRange::from_steps(60, 60, second);
        TargetProgress {
            name: name.to_owned(),
            step: "1M sequential read, depth 8".to_owned(),
            rate: "3.17 GiB/s".to_owned(),
            known: "+- 0.3 %".to_owned(),
            times: Some((TimeRange::from_steps(20, 20, second), whole)),
            following: TimeRange::default(),
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

    #[test]
    fn completed_target_keeps_time_of_following_runs() {
        let mut rows = [target("/srv/a", 120e3, 2e3), target("/srv/b", 100e3, 2e3)];
        rows[0].following = TimeRange::from_steps(180, 180, 1_000_000_000);
        rows[0].complete();
        let shown = lines((TITLE, &rows[..]), 1, &[], 80).fitted(24);
        assert!(shown[0].contains("  about 3 min 20 s left"), "{shown:?}");
        rows[0].following = TimeRange::default();
        rows[0].complete();
        let shown = lines((TITLE, &rows[..]), 1, &[], 80).fitted(24);
        assert!(shown[0].contains("  about 20 s left"), "{shown:?}");
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
