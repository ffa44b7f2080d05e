//! The option table: one row for each option of fio, in families.
//!
//! A row gives the parser, `--cmdhelp`, the names on the command line and the documentation.
//! Options of fio that iosonde does not support also have a row, with the reason and the nearest
//! alternative, so that the error can name them.

pub mod builder;
pub mod ceph;
pub mod engines;
pub mod files;
pub mod given;
pub mod how;
pub mod later;
pub mod measure;
pub mod other;
pub mod row;
mod skew;
pub mod verify;
pub mod what;
pub mod when;

pub use builder::Builder;
pub use given::Given;
pub use row::{Family, Kind, Row, Status};

use crate::syntax::command_line::{Arity, Known, Owner};

/// Returns the rows of a family.
pub fn family(family: Family) -> &'static [Row] {
    match family {
        Family::What => what::ROWS,
        Family::Files => files::ROWS,
        Family::How => how::ROWS,
        Family::When => when::ROWS,
        Family::Measure => measure::ROWS,
        Family::Verify => verify::ROWS,
        Family::Engine => engines::ROWS,
        Family::Ceph => ceph::ROWS,
        Family::Other => other::ROWS,
        Family::Later => later::ROWS,
    }
}

/// Returns all rows, family by family.
pub fn all() -> impl Iterator<Item = &'static Row> {
    Family::ALL.into_iter().flat_map(family)
}

/// Finds the row of an option by its name or an alias.
pub fn find(name: &str) -> Option<&'static Row> {
    all().find(|row| row.name == name || row.aliases.contains(&name))
}

/// Returns every name and alias, for the command line parser.
pub fn known() -> impl Iterator<Item = Known> {
    all().flat_map(|row| {
        let arity = match row.kind {
            Kind::Flag => Arity::Optional,
            Kind::OptionalText => Arity::Lenient,
            _ => Arity::Required,
        };
        row.names().map(move |name| Known {
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
