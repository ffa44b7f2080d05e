//! "What latency at which load?": latency over offered rate, in open loop.
//!
//! I/Os are offered at a rate, whether or not earlier ones are done, and latency counts from the moment at which an I/O was
//! meant to start: a stall is felt by all that were due meanwhile, as it is by users. First the capacity is found in closed
//! loop, then rates from a few per cent of it to past it are offered, in random order, so that drift does not look like a
//! trend. The highest rate that keeps an objective is found between two of them by bisection; the matrix of read and write
//! rates by following its border.

mod compared;
mod decision;
mod matrix;
mod objective;
mod plan;
mod point;
mod search;
mod step;
mod study;
mod times;

pub use compared::{Known, LatencyCurve};
pub use matrix::{Cell, CellState, Matrix, MatrixOptions};
pub use objective::{Objective, ObjectiveError};
pub use plan::{Arrivals, Mix, Pattern};
pub use point::{LoadLatency, Offered, Point, Side};
pub use search::Answer;
pub use study::{
    LoadError, LoadOptions, LoadResult, LoadWatcher, ObjectiveAnswer, Step, load, working_set,
};
pub use times::{LoadAnnouncement, StepRange, planned_time};
