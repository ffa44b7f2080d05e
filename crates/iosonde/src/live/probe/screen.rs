//! What the live view of a probe shows: a line for each step, at most 80 columns wide.

use crate::report::probe::row;
use iosonde_result::observer::Progress;
use iosonde_study::probe::{Announcement, Figure, Knee, Phase};
use iosonde_study::words;

const COLUMNS: usize = 79;
/// Width of the bar of the step that runs.
const BAR: usize = 12;

/// The steps of a probe and how far they are.
#[derive(Debug, Default)]
pub(super) struct Screen {
    target: String,
    steps: Vec<Step>,
    /// The one that runs.
    current: usize,
    /// Time of the earlier runs of the step that runs.
    before_ns: u64,
    /// When its run began to be of it, at most.
    run_ns: u64,
}

#[derive(Debug)]
struct Step {
    phase: Phase,
    /// Whether it is the search for the knee after the phase.
    search: bool,
    planned_ns: u64,
    shown: Shown,
}

#[derive(Debug, Default)]
struct Shown {
    /// Time it has taken.
    at_ns: u64,
    /// What moves now.
    rate: String,
    /// What is known by now, or what was found.
    known: String,
    done: bool,
}

impl Screen {
    /// Nothing has run yet.
    pub(super) fn of(announcement: &Announcement<'_>) -> Screen {
        let budget = announcement.budget;
        let mut steps = Vec::new();
        for phase in announcement.phases {
            steps.push(Step::of(*phase, false, budget.phase_ns(*phase)));
            if budget.searches(*phase) {
                steps.push(Step::of(*phase, true, budget.knee_ns));
            }
        }
        Screen {
            target: announcement.target.name.clone(),
            steps,
            ..Screen::default()
        }
    }

    /// A step begins. One that is begun again begins anew.
    pub(super) fn begin(&mut self, phase: Phase, search: bool) {
        let found = |step: &Step| step.phase == phase && step.search == search;
        if let Some(index) = self.steps.iter().position(found) {
            for step in &mut self.steps[..index] {
                step.shown.done = true;
            }
            self.current = index;
            self.steps[index].shown = Shown::default();
        }
        (self.before_ns, self.run_ns) = (0, 0);
    }

    /// A further run of the step that runs begins.
    pub(super) fn next_run(&mut self, known: String) {
        self.before_ns += self.run_ns;
        self.run_ns = 0;
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.known = known;
        }
    }

    /// What moves now.
    pub(super) fn progress(&mut self, progress: &Progress<'_>, rate: Option<String>) {
        self.run_ns = progress.at_ns;
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.at_ns = (self.before_ns + progress.at_ns).min(step.planned_ns);
            step.shown.rate = rate.unwrap_or_default();
        }
    }

    /// How well the rate is known by now.
    pub(super) fn confidence(&mut self, relative_error: f64) {
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.known = format!("+- {}", row::share(relative_error));
        }
    }

    /// The phase has this figure.
    pub(super) fn figure(&mut self, figure: &Figure) {
        self.end(row::headline(figure), row::details(figure));
    }

    /// The search has found this.
    pub(super) fn knee(&mut self, knee: &Knee) {
        let (most, rest) = row::knee_in_short(knee);
        self.end(most, rest);
    }

    fn end(&mut self, rate: String, known: String) {
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.rate = rate;
            step.shown.known = known;
            step.shown.done = true;
        }
    }

    /// At most, if nothing is sure earlier.
    fn left_ns(&self) -> u64 {
        let left = |step: &Step| match step.shown.done {
            true => 0,
            false => step.planned_ns - step.shown.at_ns,
        };
        self.steps.iter().map(left).sum()
    }

    /// All lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let left = words::wait(self.left_ns());
        let head = format!("{}: at most {left} left; Ctrl-C ends it early", self.target);
        let mut lines = vec![cut(&head)];
        for (index, step) in self.steps.iter().enumerate() {
            lines.push(cut(&step.line(index == self.current)));
        }
        lines
    }
}

impl Step {
    fn of(phase: Phase, search: bool, planned_ns: u64) -> Step {
        Step {
            phase,
            search,
            planned_ns,
            shown: Shown::default(),
        }
    }

    fn title(&self) -> String {
        match (self.phase, self.search) {
            (_, true) => "  at which depth most?".to_owned(),
            (Phase::Layout, _) => "layout: data to be read".to_owned(),
            (phase, _) => row::planned(phase),
        }
    }

    fn line(&self, current: bool) -> String {
        let Shown {
            at_ns,
            rate,
            known,
            done,
        } = &self.shown;
        let runs = current && !done;
        let mark = if runs { '>' } else { ' ' };
        let title = self.title();
        let mut line = format!("{mark} {title:<28} {rate:<12} {known}");
        if runs {
            let share = *at_ns as f64 / self.planned_ns.max(1) as f64;
            let full = "=".repeat((share * BAR as f64).round() as usize);
            let left = words::wait(self.planned_ns - at_ns);
            line = format!("{line:<55} [{full:<BAR$}] {left}");
        }
        line.trim_end().to_owned()
    }
}

/// As much of a line as the screen is wide.
fn cut(line: &str) -> String {
    line.chars().take(COLUMNS).collect()
}
