//! What must be true before the first I/O: which files a job uses, how large they are, and that they hold data.

mod created;
mod fill;
mod keeper;
mod layout;
mod open;
mod part;
mod resolve;
mod to_be;
mod traced;

pub use created::{CreatedFiles, FileId, HeldPaths};
pub use keeper::{Access, FileKeeper};
pub use layout::{Layout, Made, lay_out};
pub use open::{CachedFiles, OpenSet, WriteAccess, open_files, pre_read};
pub use resolve::{FileKind, FileUse, WorkerFiles, resolve, resolve_beside};
pub(crate) use resolve::{fills_all, needs_data, target_error};
pub use to_be::ToBe;
