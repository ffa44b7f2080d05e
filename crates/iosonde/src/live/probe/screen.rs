//! What the live view of a probe shows: a line for each step, and what moves at this moment. It is as wide as the terminal.

use crate::live::pods::rows;
use crate::report::probe::row;
use iosonde_result::observer::{PodProgress, Progress};
use iosonde_study::probe::{Announcement, Figure, Knee, Phase};
use iosonde_study::{TimeRange, words};

/// Where the terminal does not say how wide it is.
pub(super) const USUAL_COLUMNS: usize = 80;
/// Width of the bar of the step that runs, and what it takes to have one.
const BAR: usize = 12;
const COLUMNS_WITH_BAR: usize = 76;

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
    /// What moves at this moment, the most important first.
    now: Vec<String>,
    /// Where each of several pods stands.
    pods: Vec<PodProgress>,
}

#[derive(Debug)]
struct Step {
    phase: Phase,
    /// Whether it is the search for the knee after the phase.
    search: bool,
    planned: TimeRange,
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
            steps.push(Step::of(*phase, false, budget.phase_time(*phase)));
            if budget.searches(*phase) {
                steps.push(Step::of(*phase, true, budget.search_time(*phase)));
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
        self.now.clear();
    }

    /// A further run of the step that runs begins.
    pub(super) fn next_run(&mut self, known: String) {
        self.before_ns += self.run_ns;
        self.run_ns = 0;
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.known = known;
        }
    }

    /// What moves now: the rate in the unit of the step, and all that is known of this moment.
    pub(super) fn progress(
        &mut self,
        progress: &Progress<'_>,
        rate: Option<String>,
        now: Vec<String>,
    ) {
        self.run_ns = progress.at_ns;
        self.now = now;
        self.pods = progress.pods.to_vec();
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.at_ns = (self.before_ns + progress.at_ns).min(step.planned.most_ns);
            step.shown.rate = rate.unwrap_or_default();
        }
    }

    /// How well the rate is known by now.
    pub(super) fn confidence(&mut self, relative_error: f64) {
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.known = row::within(relative_error);
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

    /// Time that is left of all steps.
    fn left(&self) -> TimeRange {
        let left = self.steps.iter().map(Step::left);
        left.fold(TimeRange::default(), |sum, each| sum + each)
    }

    /// All lines, for a terminal of this width.
    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        let left = self.left().words();
        let head = format!("{left} left, Ctrl-C ends it early: {}", self.target);
        let mut lines = vec![head];
        for (index, step) in self.steps.iter().enumerate() {
            lines.push(step.line(index == self.current, columns));
        }
        let mut now = "now".to_owned();
        for (index, part) in self.now.iter().enumerate() {
            let separator = if index == 0 { " " } else { ", " };
            if now.len() + separator.len() + part.len() < columns {
                now.push_str(separator);
                now.push_str(part);
            }
        }
        lines.push(now);
        if !self.pods.is_empty() {
            lines.extend(rows(&self.pods, &[]).lines().map(str::to_owned));
        }
        // Some terminals wrap in the last column.
        let cut = |line: String| line.chars().take(columns.saturating_sub(1)).collect();
        lines.into_iter().map(cut).collect()
    }
}

impl Step {
    fn of(phase: Phase, search: bool, planned: TimeRange) -> Step {
        Step {
            phase,
            search,
            planned,
            shown: Shown::default(),
        }
    }

    /// Time that is left of it.
    fn left(&self) -> TimeRange {
        let left_ns = |planned_ns: u64| match self.shown.done {
            true => 0,
            false => planned_ns.saturating_sub(self.shown.at_ns),
        };
        TimeRange {
            least_ns: left_ns(self.planned.least_ns),
            most_ns: left_ns(self.planned.most_ns),
        }
    }

    fn title(&self) -> String {
        match (self.phase, self.search) {
            (_, true) => "  at which depth most?".to_owned(),
            (Phase::Layout, _) => "layout: data to be read".to_owned(),
            (phase, _) => row::planned(phase),
        }
    }

    fn line(&self, current: bool, columns: usize) -> String {
        let Shown {
            at_ns,
            rate,
            known,
            done,
        } = &self.shown;
        let runs = current && !done;
        let mark = if runs { '>' } else { ' ' };
        let title = self.title();
        if !runs {
            let line = format!("{mark} {title:<28} {rate:<12} {known}");
            return line.trim_end().to_owned();
        }
        let left = words::wait(self.left().most_ns);
        if columns < COLUMNS_WITH_BAR {
            return format!("{mark} {title:<28} {rate:<12} {left}");
        }
        let share = *at_ns as f64 / self.planned.most_ns.max(1) as f64;
        let full = "=".repeat((share * BAR as f64).round() as usize);
        let line = format!("{mark} {title:<28} {rate:<12} {known}");
        format!("{line:<55} [{full:<BAR$}] {left}")
    }
}

#[cfg(test)]
#[path = "../../../../study/tests/metered/mod.rs"]
mod metered;

#[cfg(test)]
mod tests {
    use super::metered::{Clock, Metered};
    use super::*;
    use iosonde_job::plan::PerDirection;
    use iosonde_study::probe::{Budget, ProbeOptions, ProbeTarget, TargetKind, Watcher, probe};

    /// A screen in the middle of a phase.
    fn screen() -> Screen {
        let target = ProbeTarget {
            name: "/a/directory/with/a/long/name/that/fills/most/of/the/first/line".into(),
            path: "/a/.iosonde-probe-1-0".into(),
            kind: TargetKind::Directory { free_bytes: 1 },
        };
        let mut screen = Screen::of(&Announcement {
            target: &target,
            bytes: 1,
            phases: &target.kind.phases(),
            budget: &Budget::NORMAL,
            direct: true,
        });
        screen.begin(Phase::RandomRead, false);
        screen.confidence(0.034);
        let progress = Progress {
            at_ns: 3_500_000_000,
            workers: &[],
            rate: PerDirection::default(),
            left_ns: None,
            done: None,
            pods: &[],
        };
        let now = [
            "84.2k IOPS",
            "329 MiB/s",
            "p50 740 us",
            "p99 1.20 ms",
            "nvme0n1 98 % busy",
        ];
        let now = now.map(str::to_owned).to_vec();
        screen.progress(&progress, Some("84.2k IOPS".to_owned()), now);
        screen
    }

    /// A screen whose time left is noted whenever a step begins.
    struct Watched {
        screen: Screen,
        clock: Clock,
        left: Vec<(u64, TimeRange)>,
    }

    impl Watched {
        fn note(&mut self) {
            self.left.push((self.clock.now_ns(), self.screen.left()));
        }
    }

    impl Watcher for Watched {
        fn begin(&mut self, announcement: &Announcement<'_>) {
            self.screen = Screen::of(announcement);
            self.note();
        }

        fn phase(&mut self, phase: Phase, _planned_ns: u64) {
            self.screen.begin(phase, false);
            self.note();
        }

        fn progress(&mut self, _phase: Phase, progress: &Progress<'_>) {
            self.screen.progress(progress, None, Vec::new());
        }

        fn figure(&mut self, figure: &Figure) {
            self.screen.figure(figure);
        }

        fn search(&mut self, phase: Phase, _planned_ns: u64) {
            self.screen.begin(phase, true);
            self.note();
        }

        fn knee(&mut self, knee: &Knee) {
            self.screen.knee(knee);
        }
    }

    /// What is left of a step that ends early is not known, but its bounds are.
    #[test]
    fn screen_time_left_holds_within_a_quarter() {
        for device in ["hdd", "sata-ssd", "burst", "throttled"] {
            let mut session = Metered::new(device);
            let mut watched = Watched {
                screen: Screen::default(),
                clock: session.clock.clone(),
                left: Vec::new(),
            };
            let target = ProbeTarget {
                name: "disk".into(),
                path: "sim".into(),
                kind: TargetKind::Directory {
                    free_bytes: 1 << 40,
                },
            };
            let options = ProbeOptions {
                budget: Budget::NORMAL.with_runtime(4_000_000_000),
                size_bytes: None,
                direct: true,
                seed: 1,
            };
            probe(&mut session, &target, &options, &mut watched).unwrap();
            let end_ns = watched.clock.now_ns();
            for (at_ns, left) in watched.left {
                let took_ns = (end_ns - at_ns) as f64;
                let slack_ns = 0.02 * end_ns as f64;
                let is_kept = took_ns >= 0.75 * left.least_ns as f64 - slack_ns
                    && took_ns <= 1.25 * left.most_ns as f64 + slack_ns;
                assert!(
                    is_kept,
                    "{device}: {} at {at_ns}, took {took_ns}",
                    left.words()
                );
            }
        }
    }

    #[test]
    fn it_fits_the_terminal() {
        insta::assert_snapshot!("screen_80_columns", screen().lines(80).join("\n"));
        insta::assert_snapshot!("screen_60_columns", screen().lines(60).join("\n"));
        for columns in 1..130 {
            let lines = screen().lines(columns);
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(widest < Some(columns), "{columns}: {lines:?}");
        }
    }

    #[test]
    fn a_step_that_begins_shows_nothing_of_the_one_before() {
        let mut screen = screen();
        screen.begin(Phase::SequentialRead, false);
        assert_eq!(screen.lines(80).pop().unwrap(), "now");
    }
}
