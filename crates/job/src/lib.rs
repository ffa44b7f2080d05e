//! Parses fio's job files and command lines into a [`plan::Plan`], which all other crates use.
//!
//! The crate is pure and portable: it makes no system calls and uses no other crate of the
//! workspace. It reads files and properties of the machine through [`env::Env`].
//!
//! [`syntax`] splits the text into entries, [`options`] defines each option, and [`resolve`]
//! applies the options to jobs. [`parse()`] calls them in this order.

pub mod cmdline;
pub mod control_characters;
pub mod defaults;
pub mod diagnostic;
pub mod env;
pub mod errno;
pub mod help;
pub mod hex;
pub mod json;
pub mod neighbour;
pub mod options;
pub mod outside_access;
pub mod parse;
pub mod plan;
pub mod relocate;
pub mod resolve;
pub mod run_number;
pub mod shell_word;
pub mod showcmd;
pub mod source;
pub mod syntax;
pub mod target_scheme;
pub mod target_uri;
pub mod trace;
pub mod value;
pub mod volume_space;

pub use cmdline::CommandLine;
pub use control_characters::escape_control_characters;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use env::Env;
pub use hex::lowercase_hex;
pub use json::{json_error_without_position, read_json, read_json_value};
pub use neighbour::Neighbour;
pub use parse::{ParsedCommand, parse};
pub use plan::Plan;
pub use shell_word::{quote_shell_word, single_quoted};
pub use target_scheme::TargetScheme;
pub use target_uri::TargetUri;
