//! Suites: targets x workloads x axes x repetitions with expectations, as files kept in git.
//!
//! [`suite`] reads a TOML or YAML file with its includes, and reports all errors together. A
//! workload is a fio job, one of the studies or a command. [`judge`] compares the measured figures
//! with the expectations and gives one verdict for each figure. `docs/suites.md` is the guide for
//! users.

mod beside;
mod beside_figure;
mod builtin;
mod command_step;
mod expect;
mod jobs_time;
mod judge;
mod model;
mod names;
mod outcome;
mod plan;
mod pod_figures;
mod read;
mod shape;
mod size_setting;
mod spec;
mod study_figure_kind;
mod suite_parts;
mod text;
mod workload;
mod yaml_positions;

pub use beside::beside_figures;
pub use beside_figure::BesideFigure;
pub use builtin::{ALL as BUILTIN, Builtin, find_builtin as builtin};
pub use command_step::{
    CommandFailure, CommandOutput, CommandResult, CommandSample, CommandStep, FigurePattern,
};
pub use expect::{Baseline, Claim, Expectation};
pub use judge::{Baselines, judge};
pub use model::suite_schema;
pub use names::{FigureName, FigureQuantity, FigureUnit, NamedPart, NoFigure};
pub use outcome::{
    ExpectationVerdict, FORMAT, JudgedExpectation, JudgedFigure, StepOutcome, StepResult,
    StudyFigure, SuiteResult,
};
pub use plan::suite;
pub use pod_figures::PodFigures;
pub use spec::{
    FigureSource, PartSpec, PromiseSource, StepKind, Suite, SuiteExpectation, SuitePods, SuiteStep,
    SuiteTarget, SweepStep,
};
pub use study_figure_kind::StudyFigureKind;
pub use suite_parts::{combined_part, run_repetitions, suite_parts};
pub use workload::MOST_RUNS;
