//! Side effects outside the target that jobs of a study may have.

use clap::Args;
use std::path::PathBuf;

/// Permitted side effects of jobs outside of their target.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutsideArgs {
    /// Permit jobs to run commands (exec_prerun, exec_postrun), switch I/O schedulers (ioscheduler)
    /// and create files for their buffers (mem=mmap:FILE), as in `iosonde fio`, and suites to have
    /// commands as workloads
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Directory for logs of jobs (write_bw_log, write_iolog, ...) and for the output of their
    /// commands [default: iosonde-ID in this directory, created if a job has any]
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
}
