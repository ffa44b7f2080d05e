//! What jobs of a study may do outside of their target.

use clap::Args;
use std::path::PathBuf;

/// What jobs of a study may do outside of their target.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutsideArgs {
    /// Let jobs run commands (exec_prerun, exec_postrun), switch I/O schedulers (ioscheduler) and
    /// make files for their buffers (mem=mmap:FILE), as `iosonde fio` does
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Directory for the logs of jobs (write_bw_log, write_iolog, ...) and for what their commands
    /// print [default: iosonde-ID in this directory, made if a job has any]
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
}
