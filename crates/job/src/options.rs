//! The option table: one row for each option of fio, in families.
//!
//! A row gives the parser, `--cmdhelp`, the names on the command line and the documentation.
//! Options of fio that iosonde does not support also have a row, with the reason and the nearest
//! alternative, so that the error can name them.

pub mod builder;
pub mod ceph_options;
pub mod engine_options;
pub mod file_options;
pub mod io_method_options;
pub mod later_options;
mod later_reasons;
pub mod measure_options;
pub mod option_value;
pub mod other_options;
pub mod row;
pub mod schedule_options;
mod skew;
pub mod verify_options;
pub mod workload_options;

pub use builder::JobBuilder;
pub use option_value::OptionValue;
pub use row::{OptionFamily, OptionRow, OptionSupport, ValueKind};

use crate::syntax::command_line::{Arity, KnownOption, Owner};

/// Returns the rows of a family.
pub fn family(family: OptionFamily) -> &'static [OptionRow] {
    match family {
        OptionFamily::What => workload_options::ROWS,
        OptionFamily::Files => file_options::ROWS,
        OptionFamily::How => io_method_options::ROWS,
        OptionFamily::When => schedule_options::ROWS,
        OptionFamily::Measure => measure_options::ROWS,
        OptionFamily::Verify => verify_options::ROWS,
        OptionFamily::Engine => engine_options::ROWS,
        OptionFamily::Ceph => ceph_options::ROWS,
        OptionFamily::Other => other_options::ROWS,
        OptionFamily::Later => later_options::ROWS,
    }
}

/// Returns all rows, family by family.
pub fn list_options() -> impl Iterator<Item = &'static OptionRow> {
    OptionFamily::ALL.into_iter().flat_map(family)
}

/// Finds the row of an option by its name or an alias.
pub fn find_option(name: &str) -> Option<&'static OptionRow> {
    list_options().find(|row| row.name == name || row.aliases.contains(&name))
}

/// Returns every name and alias, for the command line parser.
pub(crate) fn list_known_options() -> impl Iterator<Item = KnownOption> {
    list_options().flat_map(|row| {
        let arity = match row.kind {
            ValueKind::Flag => Arity::Optional,
            ValueKind::OptionalText => Arity::Lenient,
            _ => Arity::Required,
        };
        row.names().map(move |name| KnownOption {
            name,
            canonical: row.name,
            whole: row.is_later(),
            arity,
            owner: Owner::Job,
        })
    })
}

#[cfg(test)]
mod tests;
