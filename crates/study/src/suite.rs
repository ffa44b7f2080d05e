//! Suites: targets x workloads x axes x repetitions, with what is expected of them, as files that are kept in git.
//!
//! [`suite`] reads a TOML or YAML file with all that it includes, and tells all its errors at once. Workloads are fio's jobs
//! or one of our studies: there is no third language. What was measured is held against the expectations by [`judge`], with
//! one verdict for each figure. `docs/suites.md` is the same for users.

mod builtin;
mod expect;
mod judge;
mod model;
mod names;
mod outcome;
mod plan;
mod read;
mod shape;
mod spec;
mod text;
mod workload;

pub use builtin::{ALL as BUILTIN, Builtin, find as builtin};
pub use expect::{Baseline, Claim, Expectation};
pub use judge::{Baselines, judge};
pub use model::{SuiteFile, suite_schema};
pub use names::{Asked, FigureName, Named, NoFigure, Unit};
pub use outcome::{
    FORMAT, Found, FoundKind, Judged, StepOutcome, StepResult, SuiteResult, Verdict,
};
pub use plan::suite;
pub use spec::{Expected, Has, Owed, PartSpec, Suite, SuiteStep, SuiteTarget, SweepStep, What};
pub use workload::MOST_RUNS;
