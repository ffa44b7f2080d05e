//! Text to [`plan::Plan`]: fio's job files and command lines, and the plan that everything else works on.
//!
//! Pure and portable: no system call is made here, and no other crate of the workspace is used. What must be asked of
//! the machine is asked through [`env::Env`].

pub mod defaults;
pub mod diagnostic;
pub mod env;
pub mod plan;
pub mod source;
pub mod syntax;
pub mod value;
