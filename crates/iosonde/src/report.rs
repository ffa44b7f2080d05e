//! Results as they are read: tables for people, documents for programs.

pub(crate) mod cluster;
pub(crate) mod comparison;
pub(crate) mod csv;
pub(crate) mod doctor;
pub(crate) mod facts;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod html;
pub(crate) mod intervals;
pub(crate) mod k8s;
pub(crate) mod load;
pub(crate) mod nodes;
pub(crate) mod pivot;
pub(crate) mod pods;
pub(crate) mod probe;
pub(crate) mod pts;
pub(crate) mod rados;
pub(crate) mod series;
pub(crate) mod spread;
pub(crate) mod suite;
pub(crate) mod sweep;

use iosonde_study::CutShort;

/// Why a study has not come to its end.
fn ended_by(error: &CutShort) -> String {
    format!("ended by an error: {}; {}", error.message, error.remedy)
}
