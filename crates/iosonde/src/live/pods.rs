//! State of several pods: a table with a line per pod, redrawn on a terminal.

use super::pod_rows::rows;
use super::view::LiveView;
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
        self.view.redraw(false, |_| {
            let table = rows(pods, jobs);
            let lines = std::iter::once(all).chain(table.lines());
            lines.map(str::to_owned).collect()
        });
    }
}
