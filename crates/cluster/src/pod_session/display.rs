//! Reports of a session to its observer: progress, intervals and intermediate results of all pods.

use super::PodSession;
use crate::pod_client::PodClient;
use crate::progress_sum::ProgressSum;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, PodProgress, RunProgress};
use iosonde_result::pods::combined;
use iosonde_result::run::RunResult;

impl PodSession<'_> {
    /// Reports the summed progress, results and intervals of all pods to the observer.
    pub(super) fn show(
        &mut self,
        progress_sum: &mut ProgressSum,
        observer: &mut dyn Observer,
    ) -> Control {
        let progress = self.show_progress(progress_sum, observer);
        self.show_status(observer);
        let intervals = self.show_intervals(observer);
        match (progress, intervals) {
            (Control::Continue, Control::Continue) => Control::Continue,
            _ => Control::Stop,
        }
    }

    fn show_progress(
        &mut self,
        progress_sum: &mut ProgressSum,
        observer: &mut dyn Observer,
    ) -> Control {
        let reports = self.pods.iter().map(|pod| pod.progress.as_ref());
        let Some(progress) = progress_sum.progress(reports) else {
            return Control::Continue;
        };
        let mut rows: Vec<PodProgress> = Vec::new();
        if self.has_common_start {
            let each = self.pods.iter().enumerate();
            rows.extend(each.map(|(index, pod)| pod.pod_progress(index)));
        }
        let control = observer.progress(&RunProgress {
            pods: &rows,
            ..progress.view()
        });
        if observer.wants_status(progress.at_ns) {
            self.is_status_due = true;
            let run = self.runs;
            self.pods.iter_mut().for_each(|pod| pod.ask_status(run));
        }
        control
    }

    /// Reports the intermediate result, once each pod has sent its own.
    fn show_status(&mut self, observer: &mut dyn Observer) {
        let has_answered = |pod: &PodClient| pod.status.is_some() || pod.result.is_some();
        let is_over = self.pods.iter().all(|pod| pod.result.is_some());
        if self.is_status_due && !is_over && self.pods.iter().all(has_answered) {
            self.is_status_due = false;
            if let Some(so_far) = self.result_so_far() {
                observer.status(&so_far);
            }
        }
    }

    fn result_so_far(&self) -> Option<RunResult> {
        if !self.has_common_start {
            return self.pods[0].status.clone();
        }
        let answers = self.pods.iter().map(|pod| {
            let result = pod.status.as_ref().or(pod.result.as_ref())?;
            Some(pod.pod_run(result.clone(), &self.labels))
        });
        combined(answers.collect::<Option<_>>()?)
    }

    /// Reports each interval that all pods have sent.
    fn show_intervals(&mut self, observer: &mut dyn Observer) -> Control {
        let mut control = Control::Continue;
        // A pod that has ended sends no more intervals, so the others do not wait for it.
        let is_due = |pod: &PodClient| !pod.intervals.is_empty() || pod.result.is_some();
        while self.pods.iter().all(is_due) {
            let pods = self.pods.iter_mut();
            let slices: Vec<Interval> = pods.filter_map(|pod| pod.intervals.pop_front()).collect();
            if slices.is_empty() {
                break;
            }
            let sum = iosonde_result::pods::interval(slices.iter());
            if observer.interval(&sum) == Control::Stop {
                control = Control::Stop;
            }
        }
        control
    }
}
