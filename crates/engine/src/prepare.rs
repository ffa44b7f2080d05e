//! What must be true before the first I/O: which files a job uses, how large they are, and that they hold data.

mod fill;
mod keeper;
mod layout;
mod open;
mod part;
mod resolve;
mod traced;

pub use keeper::{Access, FileKeeper};
pub use layout::{Layout, Made, lay_out};
pub use open::{OpenSet, open_files, pre_read};
#[cfg(feature = "ceph")]
pub(crate) use resolve::needs_data;
pub(crate) use resolve::target_error;
pub use resolve::{FileKind, FileUse, WorkerFiles, resolve};
