//! What the end-to-end tests are made of: running fio and iosonde on the same job, targets whose right answer is known,
//! and comparisons of what the two programs print.
//!
//! Each test begins with a [`Scratch`], which also decides whether it may share the machine with other tests.

pub mod calls;
pub mod ceph;
pub mod device;
pub mod fuse;
pub mod kube;
pub mod mount;
pub mod need;
pub mod program;
pub mod requests;
pub mod scratch;
pub mod skeleton;
pub mod terminal;
pub mod throttle;
pub mod tree;
pub mod tries;
mod undo;

pub use calls::system_calls;
pub use need::{Need, is_full};
pub use program::{Program, Run};
pub use scratch::Scratch;
pub use tries::{ensure, one_good_try};
