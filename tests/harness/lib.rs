//! Harness of the end-to-end tests: runs fio and iosonde on the same job, creates targets with
//! known behaviour, and compares the output of the two programs.
//!
//! Each test begins with a [`Scratch`], which also decides whether other tests may run beside it.

pub mod calls;
pub mod ceph;
pub mod device;
pub mod fuse;
pub mod kube;
pub mod mount;
pub mod need;
pub mod process_state;
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
