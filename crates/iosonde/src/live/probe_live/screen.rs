//! Screen of a probe: a line per step and a line of current activity, as wide as the terminal.

use super::run_number::RunNumber;
use crate::live::view::{StepRow, activity_lines, head_line};
use crate::live::view_lines::ViewLines;
use iosonde_report::probe::{maximum_depth, row};
use iosonde_result::observer::{PodProgress, RunProgress};
use iosonde_study::probe::{Knee, PhaseFigure, ProbeAnnouncement, ProbePhase};
use iosonde_study::{TimeRange, words};

/// Steps of a probe and their progress.
#[derive(Debug, Default)]
pub(super) struct Screen {
    target: String,
    /// Time of the runs that follow this one.
    following: TimeRange,
    steps: Vec<ScreenStep>,
    /// Index of the current step.
    current: usize,
    /// Time of the earlier runs of the current step.
    before_ns: u64,
    /// Elapsed time of the current run.
    run_ns: u64,
    /// Current activity, the most important part first.
    now: Vec<String>,
    /// State of each of several pods.
    pods: Vec<PodProgress>,
}

#[derive(Debug)]
struct ScreenStep {
    phase: ProbePhase,
    /// Whether the step is the search for the knee after the phase.
    search: bool,
    planned: TimeRange,
    shown: Shown,
}

#[derive(Debug, Default)]
struct Shown {
    /// Elapsed time of the step.
    at_ns: u64,
    /// Current rate, or the result.
    rate: String,
    /// Current confidence or cell, or details of the result.
    known: String,
    done: bool,
}

impl Screen {
    /// Creates a screen on which no step has run.
    pub(super) fn new(announcement: &ProbeAnnouncement<'_>, run: RunNumber) -> Screen {
        let budget = announcement.budget;
        let mut steps = Vec::new();
        for phase in announcement.phases {
            steps.push(ScreenStep::new(*phase, false, budget.phase_time(*phase)));
            if budget.searches(*phase) {
                steps.push(ScreenStep::new(*phase, true, budget.search_time(*phase)));
            }
        }
        Screen {
            target: format!("{}{}", announcement.target.name, run.words()),
            following: budget
                .total_time(announcement.phases)
                .times(run.following()),
            steps,
            ..Screen::default()
        }
    }

    /// Starts a step. A repeated step starts anew.
    pub(super) fn begin(&mut self, phase: ProbePhase, search: bool) {
        let found = |step: &ScreenStep| step.phase == phase && step.search == search;
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

    /// Starts a further run of the current step.
    pub(super) fn next_run(&mut self, known: String) {
        self.before_ns += self.run_ns;
        self.run_ns = 0;
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.known = known;
        }
    }

    /// Updates the mean so far with its interval, and the current activity. The search shows its
    /// cell instead of the interval.
    pub(super) fn progress(
        &mut self,
        progress: &RunProgress<'_>,
        (rate, known): (String, String),
        now: Vec<String>,
    ) {
        self.run_ns = progress.at_ns;
        self.now = now;
        self.pods = progress.pods.to_vec();
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.at_ns = (self.before_ns + progress.at_ns).min(step.planned.most_ns);
            step.shown.rate = rate;
            if !step.search {
                step.shown.known = known;
            }
        }
    }

    /// Completes the phase with its figure. `plus_minus` stands before half an interval.
    pub(super) fn figure(&mut self, figure: &PhaseFigure, plus_minus: &str) {
        self.finish_step(row::headline(figure), row::details(figure, plus_minus));
    }

    /// Completes the search with its knee.
    pub(super) fn knee(&mut self, knee: &Knee, plus_minus: &str) {
        let (most, rest) = maximum_depth::knee_in_short(knee, plus_minus);
        self.finish_step(most, rest);
    }

    fn finish_step(&mut self, rate: String, known: String) {
        if let Some(step) = self.steps.get_mut(self.current) {
            step.shown.rate = rate;
            step.shown.known = known;
            step.shown.done = true;
        }
    }

    /// Remaining time of all steps, and of the runs that follow.
    fn left(&self) -> TimeRange {
        self.left_in_run() + self.following
    }

    /// Remaining time of all steps.
    pub(super) fn left_in_run(&self) -> TimeRange {
        let left = self.steps.iter().map(ScreenStep::left);
        left.fold(TimeRange::default(), |sum, each| sum + each)
    }

    /// Time of the runs that follow.
    pub(super) fn following(&self) -> TimeRange {
        self.following
    }

    /// Returns all lines for a terminal of this width.
    pub(super) fn view(&self, columns: usize) -> ViewLines {
        let steps = self.steps.iter().enumerate();
        ViewLines {
            head: head_line(&self.target, &self.left().words(), columns),
            steps: steps
                .map(|(index, step)| step.line(index == self.current, columns))
                .collect(),
            current: self.current,
            activity: activity_lines(&self.now, &self.pods, columns),
        }
    }

    /// The current step: its title without a depth, its rate and its interval or details. `None`
    /// before the first.
    pub(super) fn current(&self) -> Option<(String, &str, &str)> {
        let step = self.steps.get(self.current)?;
        let Shown { rate, known, .. } = &step.shown;
        Some((step.short_title(), rate.as_str(), known.as_str()))
    }

    /// Current activity, the most important part first.
    pub(super) fn activity(&self) -> &[String] {
        &self.now
    }
}

impl ScreenStep {
    fn new(phase: ProbePhase, search: bool, planned: TimeRange) -> ScreenStep {
        ScreenStep {
            phase,
            search,
            planned,
            shown: Shown::default(),
        }
    }

    /// Remaining time of the step.
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
            (_, true) => format!("  {}", self.short_title()),
            (ProbePhase::Layout, _) => self.short_title(),
            (phase, _) => row::planned(phase),
        }
    }

    /// The title without indent and depth.
    fn short_title(&self) -> String {
        match (self.phase, self.search) {
            (_, true) => "finding the best depth".to_owned(),
            (ProbePhase::Layout, _) => "writing the working file".to_owned(),
            (phase, _) => row::planned_without_depth(phase),
        }
    }

    fn line(&self, current: bool, columns: usize) -> String {
        let title = self.title();
        let row = StepRow {
            title: &title,
            rate: &self.shown.rate,
            known: &self.shown.known,
        };
        if !current || self.shown.done {
            return row.resting(columns);
        }
        let share = self.shown.at_ns as f64 / self.planned.most_ns.max(1) as f64;
        row.running(
            Some(share),
            &words::whole_seconds_text(self.left().most_ns),
            columns,
        )
    }
}

#[cfg(test)]
#[path = "../../../../study/tests/studies/common/metered_session.rs"]
mod metered_session;

#[cfg(test)]
mod tests {
    use super::metered_session::{MeteredSession, StudyClock};
    use super::*;
    use iosonde_job::plan::PerDirection;
    use iosonde_study::probe::{ProbeBudget, StudyTarget, StudyTargetKind, probe};
    use iosonde_study::test_targets::probe_options;
    use iosonde_study::{Announcement, StudyEvent, StudyFinding, StudyObserver, StudyStep};

    /// A screen in the middle of a phase.
    fn screen() -> Screen {
        let target = StudyTarget {
            name: "/a/directory/with/a/long/name/that/fills/most/of/the/first/line".into(),
            path: "/a/.iosonde-probe-1-0".into(),
            kind: StudyTargetKind::Directory { free_bytes: 1 },
        };
        let announcement = ProbeAnnouncement {
            target: &target,
            bytes: 1,
            phases: &target.kind.phases(),
            budget: &ProbeBudget::NORMAL,
            direct: true,
        };
        let mut screen = Screen::new(&announcement, RunNumber::default());
        let second = RunNumber { run: 2, planned: 5 };
        let repeated = Screen::new(&announcement, second);
        assert_eq!(repeated.target, format!("{}, run 2 of 5", target.name));
        let total = announcement.budget.total_time(announcement.phases);
        assert_eq!(repeated.left(), screen.left() + total.times(3));
        screen.begin(ProbePhase::RandomRead, false);
        let progress = RunProgress {
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
        let mean = ("84.2k IOPS".to_owned(), "+- 3.4 %".to_owned());
        screen.progress(&progress, mean, now);
        screen
    }

    /// A screen that records the remaining time at the start of each step.
    struct ScreenUpdates {
        screen: Screen,
        clock: StudyClock,
        left: Vec<(u64, TimeRange)>,
    }

    impl ScreenUpdates {
        fn note(&mut self) {
            self.left.push((self.clock.now_ns(), self.screen.left()));
        }
    }

    impl StudyObserver for ScreenUpdates {
        fn event(&mut self, event: &StudyEvent<'_>) {
            match event {
                StudyEvent::Announced(Announcement::Probe(extent)) => {
                    self.screen = Screen::new(extent, RunNumber::default());
                    self.note();
                }
                StudyEvent::StepStarted { step, .. } => {
                    match step {
                        StudyStep::Phase(phase) => self.screen.begin(*phase, false),
                        StudyStep::KneeSearch(phase) => self.screen.begin(*phase, true),
                        other => panic!("{other:?}"),
                    }
                    self.note();
                }
                StudyEvent::Progress(progress) => {
                    let none = (String::new(), String::new());
                    self.screen.progress(progress, none, Vec::new());
                }
                StudyEvent::Found(StudyFinding::Figure(figure)) => {
                    self.screen.figure(figure, "+-");
                }
                StudyEvent::Found(StudyFinding::Knee(knee)) => self.screen.knee(knee, "+-"),
                _ => {}
            }
        }
    }

    /// The remaining time of a step that may end early is a range, whose bounds are checked.
    #[test]
    fn screen_time_left_holds_within_a_quarter() {
        for device in ["hdd", "sata-ssd", "burst", "throttled"] {
            let mut session = MeteredSession::new(device);
            let mut watched = ScreenUpdates {
                screen: Screen::default(),
                clock: session.clock.clone(),
                left: Vec::new(),
            };
            let target = StudyTarget {
                name: "disk".into(),
                path: "sim".into(),
                kind: StudyTargetKind::Directory {
                    free_bytes: 1 << 40,
                },
            };
            let budget = ProbeBudget::NORMAL.with_runtime(4_000_000_000);
            let options = probe_options(budget, None);
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
    fn screen_lines_keep_rate_and_time_at_each_width() {
        let shown = |columns| -> Vec<String> {
            let lines = screen().view(columns).fitted(24).into_iter();
            let cut = |line: String| line.chars().take(columns - 1).collect();
            lines.map(cut).collect()
        };
        insta::assert_snapshot!("screen_80_columns", shown(80).join("\n"));
        insta::assert_snapshot!("screen_60_columns", shown(60).join("\n"));
        let running = |columns| shown(columns).remove(3);
        assert_eq!(running(40), "> 4k random read, d~ 84.2k IOPS   4 s");
        let wide = running(120);
        assert!(wide.contains("84.2k IOPS   +- 3.4 %"), "{wide}");
        assert!(wide.ends_with("] 4 s"), "{wide}");
    }

    #[test]
    fn screen_new_step_clears_activity_of_last() {
        let mut screen = screen();
        screen.begin(ProbePhase::SequentialRead, false);
        assert_eq!(screen.view(80).activity, ["now"]);
    }

    #[test]
    fn screen_in_low_terminal_keeps_running_step_and_activity() {
        for (columns, rows) in [(40, 8), (80, 22), (120, 38), (40, 3)] {
            let mut screen = screen();
            for phase in [ProbePhase::RandomRead, ProbePhase::SyncedWrite] {
                screen.begin(phase, false);
                let lines = screen.view(columns).fitted(rows);
                assert!(lines.len() <= rows, "{lines:?}");
                assert!(lines[0].contains("Ctrl-C stops"), "{lines:?}");
                assert!(lines[lines.len() - 1].starts_with("now"), "{lines:?}");
                let running = lines.iter().filter(|line| line.starts_with("> "));
                assert_eq!(running.count(), 1, "{lines:?}");
            }
        }
    }
}
