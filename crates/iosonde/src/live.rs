//! Progress displays on standard error. They only read the engine's reports, so that no display
//! changes the measurement.

mod activity;
pub(crate) mod fio_live;
pub(crate) mod load_live;
mod pod_rows;
pub(crate) mod pod_setup;
pub(crate) mod pods;
pub(crate) mod probe_live;
pub(crate) mod pts_live;
mod study_view;
pub(crate) mod suite_live;
pub(crate) mod sweep_live;
pub(crate) mod time_left;
pub(crate) mod trials_live;
pub(crate) mod view;
mod view_lines;

use iosonde_machine::write_obstacles;
use iosonde_study::probe::{StudyTarget, StudyTargetKind};
use iosonde_study::words;
use std::path::Path;

/// Line on Ctrl-C before a study begins.
const STOP_HINT: &str = "Ctrl-C stops early and prints the results so far";

/// Returns a warning of the data that is lost if a target is overwritten. `None`: none is known.
pub(crate) fn overwrite_warning(path: &str) -> Option<String> {
    let found = write_obstacles::overridden(Path::new(path))?;
    Some(format!("warning: its data will be lost: {found}"))
}

/// Returns a line on what a study does to its target. `bytes` is the size of the working set, and
/// `overwrites` says whether the study writes to an existing file or device.
fn extent_line(target: &StudyTarget, bytes: u64, overwrites: bool) -> String {
    let name = &target.name;
    let size = words::bytes(bytes);
    match target.kind {
        StudyTargetKind::Directory { .. } | StudyTargetKind::Pool { .. } => format!(
            "{name}: writes a working file of {size} and removes it at the end:\n{}",
            target.path
        ),
        StudyTargetKind::Existing { .. } if overwrites => {
            format!("{name}: overwrites its first {size}")
        }
        StudyTargetKind::Existing { .. } => format!("{name}: only read"),
        StudyTargetKind::Simulated { .. } => format!("{name}: a simulated device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extent_line_names_use_of_target() {
        let line = |kind: StudyTargetKind, overwrites| {
            let target = StudyTarget {
                name: "/data".to_owned(),
                path: "/data/file".to_owned(),
                kind,
            };
            extent_line(&target, 1 << 30, overwrites)
        };
        let existing = || StudyTargetKind::Existing {
            bytes: 1 << 30,
            device: true,
            consent: true,
        };
        assert!(line(existing(), true).starts_with("/data: overwrites its first 1"));
        assert_eq!(line(existing(), false), "/data: only read");
        let directory = StudyTargetKind::Directory { free_bytes: 1 };
        let written = line(directory, false);
        assert!(
            written.ends_with("removes it at the end:\n/data/file"),
            "{written}"
        );
    }
}
