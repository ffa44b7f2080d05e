//! Facts of studies: properties of machine and storage in their runs. Results are selected by them.

use super::blob;
use iosonde_result::property_values::PropertyValues;
use iosonde_result::run::RunResult;
use rusqlite::Connection;
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
    facts: &BTreeMap<String, PropertyValues>,
) -> rusqlite::Result<()> {
    // A known value keeps its number.
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO fact_value (study, key, value, number) \
         SELECT ?1, ?2, ?3, count(*) FROM fact_value WHERE study = ?1 AND key = ?2",
    )?;
    for (key, values) in facts {
        for value in values.iter() {
            insert.execute([study, key.as_str(), value])?;
        }
    }
    Ok(())
}

/// Copies the facts of a history of version 4 or 5, whose table `fact` has the values of a fact in
/// one text. A value with a comma may become several, as the text does not tell them apart.
pub(super) fn split_joined_facts(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection.prepare("SELECT study, key, value FROM fact")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (study, key, joined): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let values = PropertyValues::from(joined);
        insert_facts(connection, &study, &[(key, values)].into())?;
    }
    Ok(())
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
        let all = "SELECT key, value FROM fact_value WHERE key IN ('kernel', 'os') \
                   ORDER BY key, number";
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
                "DROP TABLE fact_value; ALTER TABLE part DROP COLUMN role; PRAGMA user_version = 3",
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
            let facts = [("kernel".to_owned(), PropertyValues::from(kernel))].into();
            insert_facts(&connection, &id, &facts).unwrap();
        }
        let values = facts_of(&connection);
        let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["6.1.0-21-amd64", "6.8.0", "debian 12"]);
        let facts = &history.list_studies()[0].facts;
        assert_eq!(facts["kernel"].to_string(), "6.1.0-21-amd64, 6.8.0");
    }

    #[test]
    fn joined_facts_of_version_5_become_single_values() {
        let history = TestHistory::new("facts-joined");
        history.import(run_on("debian", "12", "6.1.0-21-amd64"));
        let mut connection = Connection::open(&history.place.path).unwrap();
        connection
            .execute_batch(
                "DROP TABLE fact_value; \
                 CREATE TABLE fact (study TEXT, key TEXT, value TEXT); \
                 INSERT INTO fact SELECT id, 'kernel', '6.8.0, 6.1.0' FROM study; \
                 PRAGMA user_version = 5",
            )
            .unwrap();
        schema::migrate(&mut connection).unwrap();
        let values = ["6.8.0", "6.1.0"].map(|value| ("kernel".to_owned(), value.to_owned()));
        assert_eq!(facts_of(&connection), values);
        assert!(connection.prepare("SELECT * FROM fact").is_err());
    }

    #[test]
    fn fact_value_with_a_comma_is_stored_as_one() {
        let history = TestHistory::new("facts-comma");
        history.import(run_on("debian", "12, slim", "6.1.0"));
        let [study] = &history.list_studies()[..] else {
            panic!("not one study");
        };
        let values: Vec<&str> = study.facts["os"].iter().collect();
        assert_eq!(values, ["debian 12, slim"]);
    }
}
