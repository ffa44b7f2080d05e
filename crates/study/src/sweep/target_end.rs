//! Ends the measurements on one target of a sweep, while those on others continue.

use super::sweep_study::{SweepStudy, TargetEnd};
use crate::driver::StudyDriver;
use crate::event::StudyEvent;
use iosonde_result::run::IoFailure;
use iosonde_result::run_error::RunError;
use std::path::Path;

impl SweepStudy<'_> {
    /// Ends a target after a run without a result.
    pub(super) fn lose_target(
        &mut self,
        driver: &mut StudyDriver<'_>,
        target: usize,
        error: &RunError,
    ) {
        let why = format!("{error}; {}", error.remedy());
        self.end_target(driver, target, why, error.path());
        if let Some(end) = &mut self.ended[target] {
            end.cause = Some(error.clone());
        }
    }

    /// Ends a target after an I/O error.
    pub(super) fn fail_target(
        &mut self,
        driver: &mut StudyDriver<'_>,
        target: usize,
        failure: &IoFailure,
    ) {
        self.end_target(
            driver,
            target,
            failure.message.clone(),
            failure.file.as_deref(),
        );
    }

    /// Ends a target. `path` is the path that the reason names: the target itself or a file in it
    /// needs no name before it.
    fn end_target(
        &mut self,
        driver: &mut StudyDriver<'_>,
        target: usize,
        why: String,
        path: Option<&str>,
    ) {
        let names = |name: &str| path.is_some_and(|path| Path::new(path).starts_with(name));
        // Without targets, all jobs use their own files.
        let why = match self.targets.get(target) {
            Some(ended) if !names(&ended.name) => format!("{}: {why}", ended.name),
            _ => why,
        };
        driver.emit(&StudyEvent::Note(&why));
        self.ended[target] = Some(TargetEnd { why, cause: None });
    }
}
