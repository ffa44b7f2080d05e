//! [`RelocationError`]: why a job cannot be placed on a target of a sweep.

use crate::words;

/// Reason why a job cannot be placed on a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelocationError {
    /// The offset is beyond the end of the used part.
    #[error(
        "job `{job}` starts at {}, but the sweep uses only {} of {target}",
        words::bytes(*start_bytes), words::bytes(*bytes)
    )]
    Behind {
        /// Name of the job.
        job: String,
        /// Target as the user named it.
        target: String,
        /// Start of the job's last clone, in bytes.
        start_bytes: u64,
        /// Bytes of the target that are used.
        bytes: u64,
    },
    /// The engine has targets of its own.
    #[error("job `{job}` has ioengine={engine}, which cannot use {target}")]
    Engine {
        /// Name of the job.
        job: String,
        /// Target as the user named it.
        target: String,
        /// Name of the engine.
        engine: &'static str,
    },
    /// The trace names its own files.
    #[error("job `{job}` replays a trace, which cannot use {target}")]
    Trace {
        /// Name of the job.
        job: String,
        /// Target as the user named it.
        target: String,
    },
}

impl RelocationError {
    /// Returns the suggested action.
    pub fn remedy(&self) -> &'static str {
        match self {
            RelocationError::Behind { .. } => {
                "use a smaller offset=, or add size= to use more of the target"
            }
            RelocationError::Engine { .. } => {
                "omit ioengine=, or sweep rados://POOL, rbd://POOL/IMAGE or sim:MODEL"
            }
            RelocationError::Trace { .. } => {
                "replay the trace with `iosonde fio`, or omit read_iolog"
            }
        }
    }
}
