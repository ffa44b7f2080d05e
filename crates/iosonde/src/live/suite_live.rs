//! Progress of a suite: the running step with its rate, and a line when a step starts.

use super::activity::LiveActivity;
use super::study_view::RunningStep;
use super::view::{LiveView, head_line};
use super::view_lines::ViewLines;
use crate::signals::StopSignal;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, RunProgress};
use iosonde_study::TimeRange;

/// Shows a suite on standard error.
pub(crate) struct SuiteLive {
    stop: StopSignal,
    view: LiveView,
    title: String,
    activity: LiveActivity,
    planned: Option<TimeRange>,
    /// Planned time of the steps after this one.
    later: TimeRange,
    running: RunningStep,
}

impl SuiteLive {
    /// Creates a display.
    pub(crate) fn new(stop: StopSignal) -> SuiteLive {
        SuiteLive {
            stop,
            view: LiveView::new(),
            title: String::new(),
            activity: LiveActivity::default(),
            planned: None,
            later: TimeRange::default(),
            running: RunningStep::default(),
        }
    }

    /// Prints the title of jobs that start. `planned` is their time, and `later` that of the steps
    /// after them.
    pub(crate) fn begin(&mut self, title: &str, planned: Option<TimeRange>, later: TimeRange) {
        (self.title, self.planned, self.later) = (title.to_owned(), planned, later);
        self.running = RunningStep {
            title: "all jobs".to_owned(),
            planned_ns: planned.map(|planned| planned.most_ns),
            ..RunningStep::default()
        };
        self.activity.begin();
        self.view.begin_step();
        self.line(title);
    }

    /// Removes the redrawn lines after the jobs have ended.
    pub(crate) fn finish(&mut self) {
        self.view.clear();
    }

    /// Prints a line above the redrawn lines.
    pub(crate) fn line(&self, text: &str) {
        self.view.line(text);
    }

    /// Whether the user has requested to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.interrupt.is_requested()
    }

    /// Takes the progress of the jobs. The time that the run estimates is better than the plan's.
    fn update(&mut self, progress: &RunProgress<'_>) {
        let estimate = progress.left_ns.map(|left_ns| progress.at_ns + left_ns);
        self.running.planned_ns = estimate.or(self.running.planned_ns);
        let plus_minus = self.view.plus_minus();
        self.running
            .update(progress, &mut self.activity, false, plus_minus);
    }

    /// Time left of the suite. Empty: it is not known.
    fn left(&self) -> String {
        let step = self.planned.unwrap_or_default();
        let at_ns = self.running.at_ns;
        let left = TimeRange {
            least_ns: step.least_ns.saturating_sub(at_ns),
            most_ns: step.most_ns.saturating_sub(at_ns),
        } + self.later;
        match left.most_ns {
            0 => String::new(),
            _ => left.words(),
        }
    }
}

impl Observer for SuiteLive {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        if self.view.is_live() {
            self.update(progress);
            let (left, title, running) = (self.left(), &self.title, &self.running);
            self.view.redraw(false, |room| {
                let mut lines = running.lines(room.columns);
                let activity = lines.split_off(lines.len().min(1));
                ViewLines {
                    head: head_line(title, &left, room.columns),
                    steps: lines,
                    current: 0,
                    activity,
                }
            });
        } else {
            let (activity, title) = (&self.activity, &self.title);
            let plus_minus = self.view.plus_minus();
            self.view.plain_line(progress.at_ns, || {
                let settling = activity.settling(progress, false, plus_minus);
                let (rate, known) = settling.unwrap_or_default();
                format!("{title}  {rate} {known}").trim_end().to_owned()
            });
        }
        match self.is_over() {
            true => Control::Stop,
            false => Control::Continue,
        }
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.activity.interval(interval);
        Control::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::PerDirection;
    use iosonde_result::interval::IntervalCounts;

    #[test]
    fn suite_view_shows_time_left_of_step_and_suite() {
        let second = 1_000_000_000;
        let mut live = SuiteLive::new(StopSignal::default());
        live.begin(
            "/data: [2/3] mixed",
            Some(TimeRange::from_steps(10, 10, second)),
            TimeRange::from_steps(60, 60, second),
        );
        let read = IntervalCounts {
            ios: 84_200,
            bytes: 84_200 << 12,
        };
        let progress = RunProgress {
            at_ns: 5 * second,
            workers: &[],
            rate: PerDirection {
                read,
                ..PerDirection::default()
            },
            left_ns: None,
            done: None,
            pods: &[],
        };
        live.update(&progress);
        assert_eq!(
            head_line(&live.title, &live.left(), 80),
            "/data: [2/3] mixed  about 1 min 5 s left, Ctrl-C stops early"
        );
        let now = "now 84.2k IOPS, 329 MiB/s";
        let wide = "> all jobs                     84.2k IOPS               [======      ] 5 s";
        assert_eq!(live.running.lines(80), [wide, now]);
        let narrow = "> all jobs           84.2k IOPS   5 s";
        assert_eq!(live.running.lines(40), [narrow, now]);
    }
}
