//! A session on a simulated device that records its plans.

use crate::common::lost_pod_error::lost_pod_error;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Engine, Plan};
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::RunError;
use iosonde_result::session::Session;
use serde::Serialize;
use std::fmt::Write;

/// Runs all plans on one simulated device, even those for a directory, and records them.
pub(crate) struct PlanRecorder {
    session: Box<dyn Session>,
    device: String,
    /// One line for each run.
    lines: Vec<String>,
    refuses_direct: bool,
    /// Numbers of the runs, from 1, in which the process is stopped for a second.
    stopped_in: Vec<usize>,
    /// Number of the run, from 1, from which on runs have no result.
    lost_in: Option<usize>,
}

impl PlanRecorder {
    pub(crate) fn on(device: &str) -> PlanRecorder {
        PlanRecorder {
            session: Box::new(LocalRunner::default().open()),
            device: device.to_owned(),
            lines: Vec::new(),
            refuses_direct: false,
            stopped_in: Vec::new(),
            lost_in: None,
        }
    }

    /// Refuses all runs with O_DIRECT.
    pub(crate) fn refusing_direct(self) -> PlanRecorder {
        PlanRecorder {
            refuses_direct: true,
            ..self
        }
    }

    /// Stops the process in these runs, counted from 1.
    pub(crate) fn stopped_in(self, runs: &[usize]) -> PlanRecorder {
        PlanRecorder {
            stopped_in: runs.to_vec(),
            ..self
        }
    }

    /// Loses the pod in this run, counted from 1, and in all later runs.
    pub(crate) fn lost_in(self, run: usize) -> PlanRecorder {
        PlanRecorder {
            lost_in: Some(run),
            ..self
        }
    }

    fn record(&mut self, plan: &Plan, observer: &dyn Observer) {
        let json = serde_json::to_string(plan).unwrap();
        let text = format!("{json} {}", observer.interval_ns(plan));
        let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
        let number = self.lines.len() + 1;
        let line = format!("{number:4} {:016x} {}", fnv1a(&text), names.join(" "));
        self.lines.push(line);
    }
}

impl Session for PlanRecorder {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        self.record(plan, observer);
        let number = self.lines.len();
        if self.lost_in.is_some_and(|lost| number >= lost) {
            return Err(lost_pod_error());
        }
        if self.refuses_direct && plan.jobs.iter().any(|job| job.io.direct) {
            return Err(RunError::DirectRefused {
                path: "target".to_owned(),
                errno: iosonde_job::errno::EINVAL,
            });
        }
        let mut plan = plan.clone();
        for job in &mut plan.jobs {
            job.io.engine = Engine::Sim;
            job.io.sim = Some(self.device.clone());
        }
        let mut result = self.session.run(&plan, observer)?;
        if self.stopped_in.contains(&number) {
            result.intervals.change_each(|index, interval| {
                if index == 0 {
                    interval.stopped_ns = 1_000_000_000;
                }
            });
        }
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// The recorded lines below the name of the study. Writes the outcome to a file if requested.
pub(crate) fn recorded_plans_text<T: Serialize, E: std::fmt::Display>(
    name: &str,
    recorder: &PlanRecorder,
    outcome: &Result<T, E>,
) -> String {
    if let Some(directory) = std::env::var_os("IOSONDE_OUTCOMES") {
        let text = match outcome {
            Ok(outcome) => serde_json::to_string_pretty(outcome).unwrap(),
            Err(error) => error.to_string(),
        };
        let path = std::path::Path::new(&directory).join(name);
        std::fs::write(path, text).unwrap();
    }
    let mut text = format!("{name}\n");
    for line in &recorder.lines {
        writeln!(text, "{line}").unwrap();
    }
    text
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo).
fn fnv1a(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
