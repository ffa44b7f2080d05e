//! Sessions, targets and options that the tests of studies share.

pub(crate) mod failing_session;
pub(crate) mod load_fixture;
pub(crate) mod lost_pod_error;
pub(crate) mod lost_pod_session;
pub(crate) mod metered_session;
pub(crate) mod plan_recorder;
pub(crate) mod reseeded_session;
pub(crate) mod sweep_fixture;
pub(crate) mod target_of_kind;
