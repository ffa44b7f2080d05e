//! Latency over offered load, in open loop.
//!
//! I/Os are offered at a rate, whether or not earlier I/Os have completed. Latency counts from the
//! intended start of an I/O, which avoids coordinated omission. The capacity is measured in closed
//! loop. Rates up to 1.1 times the capacity are then offered, in random order so that drift does
//! not look like a trend. A bisection finds the highest rate that keeps an objective. The matrix of
//! read and write rates is found along its border.

mod decision;
mod latency_curve;
mod load_options;
mod load_plan;
mod load_runner;
mod load_study;
mod load_times;
mod matrix;
mod matrix_cells;
mod matrix_prediction;
mod objective;
mod objective_search;
mod step;

pub use crate::announcement::{LoadAnnouncement, StepRange};
pub use crate::figures::load_measurement::{DirectionLoad, LoadLatency, LoadMeasurement, Offered};
pub use latency_curve::{LatencyCurve, PointFigureLookup};
pub use load_options::LoadOptions;
pub use load_plan::{Arrivals, LoadPattern, Mix};
pub use load_study::{LoadResult, ObjectiveAnswer, measure_load, run_load, working_set};
pub use load_times::planned_time;
pub use matrix_cells::{CellState, Matrix, MatrixCell, MatrixOptions};
pub use objective::{Objective, ObjectiveError};
pub use objective_search::Answer;
