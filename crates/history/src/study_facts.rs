//! Facts of studies: properties of machine and storage in their runs. Results are selected by them.

use super::blob;
use iosonde_result::run::RunResult;
use iosonde_result::run_facts::FACT_SEPARATOR;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

/// The first run of each study that is a result of iosonde.
const FIRST_RUNS: &str = "SELECT study, document FROM run \
     WHERE format = 'run-result' AND number = \
         (SELECT min(first.number) FROM run AS first \
          WHERE first.study = run.study AND first.format = 'run-result')";

/// Adds the facts of a run to its study. A fact that differs between runs has all values.
pub(super) fn insert_facts(
    connection: &Connection,
    study: &str,
    facts: &BTreeMap<String, String>,
) -> rusqlite::Result<()> {
    let mut select =
        connection.prepare_cached("SELECT value FROM fact WHERE study = ?1 AND key = ?2")?;
    let mut insert = connection
        .prepare_cached("INSERT OR REPLACE INTO fact (study, key, value) VALUES (?1, ?2, ?3)")?;
    for (key, value) in facts {
        let known: Option<String> = select
            .query_row([study, key.as_str()], |row| row.get(0))
            .optional()?;
        let all = known.map_or_else(|| value.clone(), |known| with_values(known, value));
        insert.execute([study, key.as_str(), all.as_str()])?;
    }
    Ok(())
}

/// Appends the values that are not known yet.
fn with_values(mut known: String, values: &str) -> String {
    for value in values.split(FACT_SEPARATOR) {
        if !known.split(FACT_SEPARATOR).any(|other| other == value) {
            known.push_str(FACT_SEPARATOR);
            known.push_str(value);
        }
    }
    known
}

/// Fills the table of facts from the documents of runs that were stored before the table existed.
pub(super) fn insert_facts_of_stored_runs(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection.prepare(FIRST_RUNS)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (study, document): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        // A document that cannot be read has no facts; loading it reports the reason.
        if let Ok(run) = blob::unpacked::<RunResult>(&document) {
            insert_facts(connection, &study, &run.facts())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use crate::tests::{TestHistory, run_on};

    fn facts_of(connection: &Connection) -> Vec<(String, String)> {
        let all = "SELECT key, value FROM fact WHERE key IN ('kernel', 'os') ORDER BY key";
        let mut select = connection.prepare(all).unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn facts_of_runs_stored_before_the_table_are_filled() {
        let history = TestHistory::new("facts-filled");
        history.import(run_on("debian", "12", "6.1.0-21-amd64"));
        let mut connection = Connection::open(&history.place.path).unwrap();
        let expected = [("kernel", "6.1.0-21-amd64"), ("os", "debian 12")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(facts_of(&connection), expected);
        connection
            .execute_batch(
                "DROP TABLE fact; ALTER TABLE part DROP COLUMN role; PRAGMA user_version = 3",
            )
            .unwrap();
        schema::migrate(&mut connection).unwrap();
        assert_eq!(facts_of(&connection), expected);
    }

    #[test]
    fn facts_that_differ_between_runs_have_all_values() {
        let history = TestHistory::new("facts-differ");
        history.import(run_on("debian", "12", "6.1.0-21-amd64"));
        let connection = Connection::open(&history.place.path).unwrap();
        let id: String = connection
            .query_row("SELECT id FROM study", [], |row| row.get(0))
            .unwrap();
        for kernel in ["6.8.0", "6.1.0-21-amd64"] {
            let facts = [("kernel".to_owned(), kernel.to_owned())].into();
            insert_facts(&connection, &id, &facts).unwrap();
        }
        assert_eq!(facts_of(&connection)[0].1, "6.1.0-21-amd64, 6.8.0");
    }
}
