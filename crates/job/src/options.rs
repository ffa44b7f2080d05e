//! The table of options: one row for each option of fio, in families.
//!
//! A row yields the parser, `--cmdhelp`, the names of the command line and the documentation. An option of fio that
//! iosonde does not have is a row too, with the reason and the nearest way, so that it can be refused by name.

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

/// The rows of a family.
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

/// All rows, family by family.
pub fn all() -> impl Iterator<Item = &'static Row> {
    Family::ALL.into_iter().flat_map(family)
}

/// The row of an option, by its name or an alias.
pub fn find(name: &str) -> Option<&'static Row> {
    all().find(|row| row.name == name || row.aliases.contains(&name))
}

/// Every name and alias, for the command line.
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
