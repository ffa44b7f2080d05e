//! Figures that studies measure and report, of phases, cells and curves, without their runs.
//! Events carry these types, so this folder does not use the driver.

pub(crate) mod cell;
pub(crate) mod curve;
pub(crate) mod curve_plan;
pub(crate) mod estimate;
pub(crate) mod load_measurement;
pub(crate) mod pattern_knee;
pub(crate) mod phase_figure;
pub(crate) mod phase_run;
pub(crate) mod preset;
pub(crate) mod pts_series;
pub(crate) mod saturation_result;
pub(crate) mod search_rules;
pub(crate) mod series;
