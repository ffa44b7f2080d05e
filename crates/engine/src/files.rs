//! Preparation before the first I/O: files of a job, their sizes, and their layout with data.

mod created;
mod file_contents;
mod layout;
mod open;
mod open_file_cache;
mod planned_files;
mod region;
mod resolve;
mod traced_files;

pub use created::{CreatedFiles, FileId, HeldPaths};
pub use layout::{Layout, Made, lay_out};
pub use open::{CachedFiles, OpenSet, WriteAccess, open_files, pre_read};
pub use open_file_cache::{Access, FileKeeper};
pub use planned_files::ToBe;
pub use resolve::{FileKind, FileUse, WorkerFiles, resolve, resolve_beside};
pub(crate) use resolve::{fills_all, needs_data, target_error};
