//! Text to [`plan::Plan`]: fio's job files and command lines, and the plan that everything else works on.
//!
//! Pure and portable: no system call is made here, and no other crate of the workspace is used. What must be asked of
//! the machine is asked through [`env::Env`].
//!
//! The way through: [`syntax`] takes text apart without knowing what it means, [`options`] says what each option
//! means, [`resolve`] puts both together. [`parse()`] does it all.

pub mod cmdline;
pub mod control_characters;
pub mod defaults;
pub mod diagnostic;
pub mod env;
pub mod errno;
pub mod help;
pub mod options;
pub mod outside_access;
pub mod parse;
pub mod place;
pub mod plan;
pub mod resolve;
pub mod showcmd;
pub mod source;
pub mod syntax;
pub mod target;
pub mod trace;
pub mod value;

pub use cmdline::CommandLine;
pub use control_characters::escape_control_characters;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use env::Env;
pub use parse::{Parsed, parse};
pub use plan::Plan;
pub use target::Target;
