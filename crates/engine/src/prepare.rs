//! What must be true before the first I/O: which files a job uses, how large they are, and that they hold data.

mod layout;
mod open;
mod resolve;

pub use layout::{Layout, Made, lay_out};
pub use open::{OpenSet, open_files};
pub(crate) use resolve::target_error;
pub use resolve::{FileUse, WorkerFiles, resolve};
