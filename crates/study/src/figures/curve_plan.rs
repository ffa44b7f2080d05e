//! [`CurvePlan`]: one combination of the values of a sweep's axes.

use iosonde_job::plan::Job;
use serde::Serialize;

/// One combination of the values of all axes but the depth.
#[derive(Debug, Clone, Serialize)]
pub struct CurvePlan {
    /// Value of each axis but the last, which is the depth.
    pub values: Vec<String>,
    /// Index of each of these values along its axis.
    pub(crate) at: Vec<usize>,
    /// Index of the target.
    pub(crate) target: usize,
    /// The workload. Depth and time are set for each cell.
    pub job: Job,
    /// Whether an option sets the engine.
    pub(crate) names_engine: bool,
}

impl CurvePlan {
    /// Whether the engine has one I/O in flight at any depth.
    pub fn is_synchronous(&self) -> bool {
        self.job.io.engine.is_synchronous()
    }

    /// Explains why all depths of this curve are equal.
    pub fn one_in_flight(&self) -> String {
        let engine = self.job.io.engine.name();
        let whose = match self.names_engine {
            true => "",
            false => ", the default of fio,",
        };
        format!("ioengine={engine}{whose} keeps one I/O in flight at any iodepth")
    }
}
