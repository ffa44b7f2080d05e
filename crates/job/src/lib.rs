//! Text to [`plan::Plan`]: fio's job files and command lines, and the plan that everything else works on.
//!
//! Pure and portable: no system call is made here, and no other crate of the workspace is used.

pub mod plan;
