//! Progress of a load study: the running step, and a line per point.

use super::study_view::{StudyExtent, StudySteps, StudyView};
use super::{STOP_HINT, extent_line, overwrite_warning};
use iosonde_report::load::{one_line, what};
use iosonde_study::load::{LoadAnnouncement, StepRange};
use iosonde_study::probe::StudyTargetKind;
use iosonde_study::{Announcement, StudyFinding, StudyStep, words};

/// Shows a load study on standard error.
pub(crate) type LoadLive = StudyView<LoadSteps>;

/// Steps of a load study.
#[derive(Default)]
pub(crate) struct LoadSteps {
    is_layout: bool,
    number: u64,
    steps: StepRange,
}

impl LoadSteps {
    /// `[3/14 to 26]`
    fn place(&self) -> String {
        format!("[{}/{}]", self.number, range(self.steps))
    }
}

impl StudySteps for LoadSteps {
    fn announce(&mut self, announcement: &Announcement<'_>) -> Option<StudyExtent> {
        let Announcement::Load { target, extent } = announcement else {
            return None;
        };
        self.steps = extent.steps;
        let overwrites = matches!(target.kind, StudyTargetKind::Existing { consent: true, .. });
        let mut lines = vec![extent_line(target, extent.bytes, overwrites)];
        if overwrites {
            lines.extend(overwrite_warning(&target.path));
        }
        lines.extend([length(extent), STOP_HINT.to_owned()]);
        Some(StudyExtent::of_target(target, lines, extent.planned))
    }

    fn begin(&mut self, step: StudyStep<'_>) -> String {
        self.is_layout = matches!(step, StudyStep::Layout { .. });
        self.number += u64::from(!self.is_layout);
        self.steps.least = self.steps.least.max(self.number);
        match step {
            StudyStep::Layout { .. } => "writing the working set".to_owned(),
            StudyStep::Capacity => format!("{} capacity", self.place()),
            StudyStep::OfferedLoad(offered) => {
                format!("{} offering {}", self.place(), what(offered))
            }
            _ => String::new(),
        }
    }

    fn is_bandwidth(&self) -> bool {
        self.is_layout
    }

    fn found(&mut self, finding: StudyFinding<'_>) -> Option<String> {
        match finding {
            StudyFinding::Capacity { iops } => Some(format!(
                "capacity in closed loop: {} IOPS",
                words::iops(iops)
            )),
            StudyFinding::Point(point) => Some(one_line(point)),
            _ => None,
        }
    }
}

/// Describes the number of steps and their time.
fn length(announcement: &LoadAnnouncement) -> String {
    let unit = match announcement.steps.most {
        1 => "step",
        _ => "steps",
    };
    let layout = match announcement.layout_bytes {
        0 => "",
        _ => ", plus layout",
    };
    format!(
        "{} {unit}, {}{layout}",
        range(announcement.steps),
        announcement.planned.words()
    )
}

/// `14`, or `14 to 26`.
fn range(steps: StepRange) -> String {
    match steps.least == steps.most {
        true => steps.most.to_string(),
        false => format!("{} to {}", steps.least, steps.most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_study::TimeRange;

    #[test]
    fn load_length_is_a_range_if_searches_follow() {
        let announcement = |least, most, layout_bytes| LoadAnnouncement {
            bytes: 1 << 30,
            layout_bytes,
            steps: StepRange { least, most },
            planned: TimeRange::from_steps(least, most, 5_000_000_000),
        };
        assert_eq!(
            length(&announcement(14, 26, 1 << 30)),
            "14 to 26 steps, 1 min 10 s to 2 min 10 s, plus layout"
        );
        assert_eq!(
            length(&announcement(14, 14, 0)),
            "14 steps, about 1 min 10 s"
        );
        assert_eq!(length(&announcement(1, 1, 0)), "1 step, about 5 s");
    }
}
