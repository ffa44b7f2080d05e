//! Roles of parts in rows without one: those that programs of version 4 or older wrote, some of
//! them after another program had migrated the file. In these rows only the names of parts mark
//! those that were measured beside a neighbour, and the neighbours.

use iosonde_result::compare::{PartRole, ResultPart};
use std::collections::BTreeSet;

/// End of the names of parts that were measured beside a neighbour.
const BESIDE_SUFFIX: &str = " beside";
/// Stands between the name of the neighbour and that of the part beside it.
const OF_PART: &str = " of ";

/// Sets the roles of those parts of a study whose rows have none. `without_role` has their indices.
pub(super) fn set_roles_from_names(parts: &mut [(u32, ResultPart)], without_role: &[usize]) {
    if without_role.is_empty() {
        return;
    }
    let names: Vec<String> = parts.iter().map(|(_, part)| part.name.clone()).collect();
    let beside: BTreeSet<&str> = names
        .iter()
        .filter_map(|name| name.strip_suffix(BESIDE_SUFFIX))
        .collect();
    for index in without_role {
        parts[*index].1.role = role_of_name(&names[*index], &beside);
    }
}

/// Returns the role of a part by its name. `beside` has the names of the parts that were measured
/// beside a neighbour, without their suffix.
fn role_of_name(name: &str, beside: &BTreeSet<&str>) -> PartRole {
    let part = name.split_once(OF_PART).map(|(_, part)| part);
    if part.is_some_and(|part| beside.contains(part)) {
        PartRole::Neighbour
    } else if name.ends_with(BESIDE_SUFFIX) {
        PartRole::BesideNeighbour
    } else {
        PartRole::Alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{TestHistory, run_on};
    use iosonde_result::compare::PartRole::{Alone, BesideNeighbour, Neighbour};
    use rusqlite::Connection;

    /// Stores a result whose parts have these names and roles.
    fn history_of(name: &str, parts: &[(&str, PartRole)]) -> TestHistory {
        let history = TestHistory::new(name);
        let mut study = run_on("debian", "12", "6.1.0");
        let run = &mut study.runs[0];
        let part = run.parts[0].clone();
        let parts = parts.iter().map(|(name, role)| ResultPart {
            name: (*name).to_owned(),
            role: *role,
            ..part.clone()
        });
        run.parts = parts.collect();
        history.import(study);
        history
    }

    fn stored_roles(history: &TestHistory) -> Vec<PartRole> {
        let studies = history.list_studies();
        studies[0].parts.iter().map(|part| part.role).collect()
    }

    #[test]
    fn role_of_stored_part_does_not_come_from_its_name() {
        let parts = [
            ("wal beside", BesideNeighbour),
            ("copy of wal", Alone),
            ("neighbour of wal", Neighbour),
            ("write beside", Alone),
        ];
        let history = history_of("roles", &parts);
        assert_eq!(stored_roles(&history), parts.map(|(_, role)| role));
    }

    #[test]
    fn role_of_part_stored_without_one_comes_from_its_name() {
        let names = ["wal beside", "neighbour of wal", "neighbour of log", "wal"];
        let history = history_of("roles-of-names", &names.map(|name| (name, Alone)));
        let connection = Connection::open(&history.place.path).unwrap();
        let set_null = |condition: &str| {
            let sql = format!("UPDATE part SET role = NULL WHERE {condition}");
            connection.execute(&sql, []).unwrap();
        };
        set_null("name = 'neighbour of wal'");
        assert_eq!(stored_roles(&history), [Alone, Neighbour, Alone, Alone]);
        set_null("true");
        let expected = [BesideNeighbour, Neighbour, Alone, Alone];
        assert_eq!(stored_roles(&history), expected);
    }
}
