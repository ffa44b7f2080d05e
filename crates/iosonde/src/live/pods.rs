//! State of several pods: a table with a line per pod, redrawn on a terminal.

use super::pod_rows::pod_table;
use super::view::LiveView;
use super::view_lines::ViewLines;
use iosonde_result::observer::PodProgress;

/// Lines on standard error.
pub(crate) struct PodsLive {
    view: LiveView,
}

impl PodsLive {
    /// Returns `None` if standard error is no terminal.
    pub(crate) fn new() -> Option<PodsLive> {
        let view = LiveView::new();
        view.is_live().then_some(PodsLive { view })
    }

    /// Draws the table below a line about all pods. `jobs` are the names of the plan's jobs.
    pub(crate) fn show(&mut self, all: &str, pods: &[PodProgress], jobs: &[String]) {
        self.view.redraw(false, |room| ViewLines {
            head: all.to_owned(),
            steps: pod_table(pods, jobs, room.columns)
                .lines()
                .map(str::to_owned)
                .collect(),
            ..ViewLines::default()
        });
    }
}
