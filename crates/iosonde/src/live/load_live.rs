//! Progress of a load study: its latency curve as it grows, the running step, and a line per point.

use super::study_view::{StudyExtent, StudySteps, StudyView};
use super::{STOP_HINT, extent_line, overwrite_warning};
use crate::output::Output;
use crate::terminal_text::TerminalSize;
use iosonde_report::load::{GrowingCurve, offered_load_text, one_line};
use iosonde_study::load::{LoadAnnouncement, Objective, StepRange};
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
    curve: GrowingCurve,
}

impl LoadSteps {
    /// Returns the steps of a study with these objectives, which the curve shows.
    pub(crate) fn with_objectives(objectives: &[Objective]) -> LoadSteps {
        LoadSteps {
            curve: GrowingCurve::with_objectives(objectives.to_vec()),
            ..LoadSteps::default()
        }
    }

    /// `[3/14 to 26]`
    fn place(&self) -> String {
        format!("[{}/{}]", self.number, range(self.steps))
    }
}

impl StudySteps for LoadSteps {
    fn announce(&mut self, announcement: &Announcement<'_>, is_live: bool) -> Option<StudyExtent> {
        let Announcement::Load { target, extent } = announcement else {
            return None;
        };
        self.steps = extent.steps;
        let overwrites = matches!(target.kind, StudyTargetKind::Existing { consent: true, .. });
        let mut lines = vec![extent_line(target, extent.bytes, overwrites)];
        if overwrites {
            lines.extend(overwrite_warning(&target.path));
        }
        // The redrawn lines have the number of steps and the time left.
        lines.extend((!is_live).then(|| length(extent)));
        lines.push(STOP_HINT.to_owned());
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
                format!("{} offering {}", self.place(), offered_load_text(offered))
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
                words::iops_text(iops)
            )),
            StudyFinding::Point(point) => Some(one_line(point)),
            StudyFinding::RateOfCurve(point) => {
                self.curve.add(point);
                None
            }
            _ => None,
        }
    }

    fn rows(&self, room: TerminalSize) -> Vec<String> {
        let style = Output::Standard.style();
        self.curve.lines(room.columns, room.rows, style)
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
    use crate::live::study_view::{RunningStep, study_lines};
    use iosonde_result::histogram::Histogram;
    use iosonde_study::TimeRange;
    use iosonde_study::load::{DirectionLoad, LoadLatency, LoadMeasurement, Offered};
    use iosonde_study::probe::StudyTarget;

    /// A rate that the target sustained, with one latency.
    fn sustained(rate: f64, latency_ns: u64) -> LoadMeasurement {
        let mut histogram = Histogram::default();
        for _ in 0..2000 {
            histogram.record(latency_ns);
        }
        let latency = LoadLatency {
            count: 2000,
            mean_ns: latency_ns as f64,
            max_ns: latency_ns as f64,
            histogram,
        };
        LoadMeasurement {
            offered: Offered {
                reads_per_s: rate,
                writes_per_s: 0.0,
            },
            read: Some(DirectionLoad {
                offered_per_s: rate,
                achieved_per_s: rate,
                latency,
            }),
            write: None,
            runs: 1,
            kept_up: true,
            interrupted: false,
            verdicts: Vec::new(),
            kinds: Vec::new(),
            failure: None,
            percentile_intervals_ns: Vec::new(),
        }
    }

    #[test]
    fn latency_curve_grows_with_each_rate_and_fits_the_terminal() {
        let running = RunningStep {
            title: "[3/14] offering 3.00k reads/s".to_owned(),
            rate: "2.99k IOPS".to_owned(),
            now: vec!["2.98k IOPS".to_owned()],
            ..RunningStep::default()
        };
        let mut steps = LoadSteps::default();
        let lines_of = |steps: &LoadSteps, columns: usize, rows: usize| {
            let room = TerminalSize { columns, rows };
            let view = study_lines(steps, &running, "/data".to_owned(), room);
            view.fitted(rows)
        };
        let first = sustained(1000.0, 100_000);
        assert!(steps.found(StudyFinding::Point(&first)).is_some());
        assert!(steps.found(StudyFinding::RateOfCurve(&first)).is_none());
        assert_eq!(lines_of(&steps, 80, 22).len(), 3);
        for rate in [2000.0, 3000.0] {
            let point = sustained(rate, (rate * 200.0) as u64);
            steps.found(StudyFinding::RateOfCurve(&point));
            let shown = lines_of(&steps, 80, 22);
            let end = format!("{:.2}k", rate / 1000.0);
            assert!(shown.iter().any(|line| line.ends_with(&end)), "{shown:?}");
        }
        for (columns, rows, has_chart) in [(40, 8, false), (40, 22, true), (120, 38, true)] {
            let shown = lines_of(&steps, columns, rows);
            assert!(shown.len() <= rows, "{shown:?}");
            assert_eq!(shown.len() > 3, has_chart, "{shown:?}");
            assert!(shown[shown.len() - 2].starts_with("> [3/14]"), "{shown:?}");
            assert!(shown[shown.len() - 1].starts_with("now "), "{shown:?}");
        }
    }

    #[test]
    fn growing_curve_of_a_study_shows_its_objectives() {
        let objective: Objective = "p99=400us".parse().unwrap();
        let mut steps = LoadSteps::with_objectives(&[objective]);
        for rate in [1000.0, 2000.0, 3000.0] {
            let point = sustained(rate, (rate * 200.0) as u64);
            steps.found(StudyFinding::RateOfCurve(&point));
        }
        let text = steps.rows(TerminalSize::USUAL).join("\n");
        assert!(text.contains("p99 <= 400 us"), "{text}");
    }

    #[test]
    fn cells_of_the_matrix_are_no_points_of_the_curve() {
        let mut steps = LoadSteps::default();
        for rate in [1000.0, 2000.0, 3000.0] {
            let point = sustained(rate, (rate * 200.0) as u64);
            assert!(steps.found(StudyFinding::Point(&point)).is_some());
        }
        let room = TerminalSize::USUAL;
        assert!(steps.rows(room).is_empty());
    }

    fn announcement(least: u64, most: u64, layout_bytes: u64) -> LoadAnnouncement {
        LoadAnnouncement {
            bytes: 1 << 30,
            layout_bytes,
            steps: StepRange { least, most },
            planned: TimeRange::from_steps(least, most, 5_000_000_000),
        }
    }

    #[test]
    fn redrawn_lines_replace_the_announced_length() {
        let target = StudyTarget {
            name: "sim:nvme".to_owned(),
            path: String::new(),
            kind: StudyTargetKind::Simulated {
                options: "nvme".to_owned(),
            },
        };
        let extent = announcement(14, 26, 0);
        let lines = |is_live| {
            let announced = Announcement::Load {
                target: &target,
                extent,
            };
            let extent = LoadSteps::default().announce(&announced, is_live);
            extent.unwrap().lines
        };
        let device = "sim:nvme: a simulated device";
        let length = "14 to 26 steps, 1 min 10 s to 2 min 10 s";
        assert_eq!(lines(false), [device, length, STOP_HINT]);
        assert_eq!(lines(true), [device, STOP_HINT]);
    }

    #[test]
    fn load_length_is_a_range_if_searches_follow() {
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
