//! Preparation before the first I/O: files of a job, their sizes, and their layout with data.

mod created;
mod created_paths;
mod file_contents;
mod file_errors;
mod layout;
mod open;
mod open_file_cache;
mod pending_layout;
mod planned_files;
mod region;
mod resolve;
mod rw_flag_check;
mod traced_files;

pub use crate::worker_files::{FileKind, FileUse, WorkerFiles};
pub use created::{CreatedFiles, FileId, HeldPaths};
pub use created_paths::CreatedPaths;
pub(crate) use file_errors::{target_error, unusable_target};
pub use layout::lay_out;
pub(crate) use open::CachedFiles;
pub use open::{OpenSet, WriteAccess, open_files, pre_read};
pub(crate) use open_file_cache::{FileAccess, OpenFileCache};
pub use pending_layout::PendingLayout;
pub use planned_files::PlannedFiles;
pub(crate) use resolve::{fills_all, resolve_beside};
pub use resolve::{needs_data, resolve};
pub(crate) use rw_flag_check::check_rw_flags;
