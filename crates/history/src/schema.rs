//! The tables, as a list of migrations. A released migration never changes; append a new one, and
//! keep a history of the new version in `tests/histories`: the kept file of the version before,
//! migrated, with values in the new columns as this program writes them.

use super::study_facts;
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Identifies the file as a history: `ioso`.
pub(super) const APPLICATION_ID: i64 = 0x696f_736f;

/// Migrations from version n to n + 1. `PRAGMA user_version` counts those applied.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE study (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        target TEXT NOT NULL,
        machine TEXT,
        program TEXT NOT NULL,
        started_at_ms INTEGER NOT NULL,
        finished_at_ms INTEGER,
        imported_from TEXT,
        digest TEXT UNIQUE,
        document BLOB
    ) STRICT;
    CREATE INDEX study_by_start ON study (started_at_ms);

    CREATE TABLE label (
        study TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (study, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX label_by_value ON label (key, value);

    CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        study TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        started_at_ms INTEGER NOT NULL,
        elapsed_ns INTEGER NOT NULL,
        format TEXT NOT NULL,
        document BLOB NOT NULL,
        series BLOB,
        UNIQUE (study, number)
    ) STRICT;

    CREATE TABLE part (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        rw TEXT NOT NULL,
        bs TEXT NOT NULL,
        iodepth INTEGER NOT NULL,
        numjobs INTEGER NOT NULL,
        PRIMARY KEY (run, number)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE figure (
        run INTEGER NOT NULL,
        part INTEGER NOT NULL,
        subject TEXT NOT NULL,
        measure TEXT NOT NULL,
        value REAL NOT NULL,
        low REAL,
        high REAL,
        freedom REAL,
        basis TEXT,
        settled INTEGER,
        PRIMARY KEY (run, part, subject, measure),
        FOREIGN KEY (run, part) REFERENCES part (run, number) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    ",
    "
    ALTER TABLE figure ADD COLUMN repeat_factor REAL;
    ",
    "
    CREATE TABLE interval_block (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        block BLOB NOT NULL,
        PRIMARY KEY (run, number)
    ) STRICT;

    CREATE TABLE open_run (
        run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE
    ) STRICT;
    ",
    "
    CREATE TABLE fact (
        study TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (study, key)
    ) STRICT, WITHOUT ROWID;
    ",
    "
    ALTER TABLE part ADD COLUMN role TEXT;
    ",
    "
    CREATE TABLE fact_value (
        study TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (study, key, value)
    ) STRICT, WITHOUT ROWID;
    ",
];

/// The first version with the table `fact`.
const FACTS_SINCE: i64 = 4;

/// The first version with the column `role` of the table `part`.
const ROLES_SINCE: i64 = 5;

/// The first version with the table `fact_value` instead of `fact`.
const FACT_VALUES_SINCE: i64 = 6;

/// Tables of version 3, to read a history of version 2 that cannot be migrated.
const TEMPORARY_TABLES_OF_3: &str = "
    CREATE TEMP TABLE interval_block (run INTEGER, number INTEGER, block BLOB);
    CREATE TEMP TABLE open_run (run INTEGER);
    ";

/// The table `fact_value`, to read a history of an older version that cannot be migrated.
const TEMPORARY_TABLE_OF_6: &str = "
    CREATE TEMP TABLE fact_value (
        study TEXT, key TEXT, value TEXT, number INTEGER, PRIMARY KEY (study, key, value)
    );
    ";

/// The table `part` of version 5, to read a history of an older version that cannot be migrated.
const TEMPORARY_VIEW_OF_5: &str = "
    CREATE TEMP VIEW part AS SELECT *, NULL AS role FROM main.part;
    ";

/// The version that this program writes.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Returns the version of a file; 0: it is empty.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Migrates a history that is only read. A read-only file of version 2 or later gets what it lacks
/// as temporary tables and a temporary view.
pub(super) fn migrate_to_read(connection: &mut Connection) -> rusqlite::Result<()> {
    let Err(error) = migrate(connection) else {
        return Ok(());
    };
    let version = version(connection)?;
    if !(2..VERSION).contains(&version) {
        return Err(error);
    }
    connection.execute_batch("PRAGMA temp_store = MEMORY;")?;
    if version == 2 {
        connection.execute_batch(TEMPORARY_TABLES_OF_3)?;
    }
    if version < ROLES_SINCE {
        connection.execute_batch(TEMPORARY_VIEW_OF_5)?;
    }
    connection.execute_batch(TEMPORARY_TABLE_OF_6)?;
    insert_fact_values(connection, version)
}

/// Fills the table `fact_value` of a history that had an older version.
fn insert_fact_values(connection: &Connection, version: i64) -> rusqlite::Result<()> {
    debug_assert!(
        version < FACT_VALUES_SINCE,
        "version {version} has the values"
    );
    match version < FACTS_SINCE {
        true => study_facts::insert_facts_of_stored_runs(connection),
        false => study_facts::split_joined_facts(connection),
    }
}

/// Migrates the tables. A concurrent program that waited for the lock finds nothing to do.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? >= VERSION {
        return Ok(());
    }
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let done = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(done.max(0) as usize) {
        transaction.execute_batch(migration)?;
    }
    if done < FACT_VALUES_SINCE {
        insert_fact_values(&transaction, done)?;
        transaction.execute_batch("DROP TABLE fact")?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION.max(done))?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::OpenFlags;
    use std::path::Path;

    #[test]
    fn read_only_histories_of_older_versions_are_readable() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let open = |name: &str| {
            let uri = format!("file:{}?immutable=1", directory.join(name).display());
            Connection::open_with_flags(uri, flags).unwrap()
        };
        let mut before = open("version-2.db");
        assert!(migrate(&mut before).is_err());
        migrate_to_read(&mut before).unwrap();
        let count = "SELECT count(*) FROM run LEFT JOIN open_run ON open_run.run = run.id \
                     LEFT JOIN interval_block ON interval_block.run = run.id";
        let runs: i64 = before.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!((runs, version(&before)), (2, Ok(2)));
        assert!(migrate_to_read(&mut open("version-1.db")).is_err());
        let mut third = open("version-3.db");
        assert_eq!(migrate_to_read(&mut third), Ok(()));
        let facts = |history: &Connection| -> i64 {
            let count = "SELECT count(*) FROM fact_value";
            history.query_row(count, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(version(&third), Ok(3));
        let mut fourth = open("version-4.db");
        assert_eq!(migrate_to_read(&mut fourth), Ok(()));
        let mut fifth = open("version-5.db");
        assert_eq!(migrate_to_read(&mut fifth), Ok(()));
        // The run of version 3 has no host, so it has no facts.
        assert_eq!([&third, &fourth, &fifth].map(facts), [0, 1, 1]);
        let roles = "SELECT count(*), count(role) FROM run JOIN part ON part.run = run.id";
        let counts = [before, third, fourth, fifth].map(|history| -> (i64, i64) {
            let counts = history.query_row(roles, [], |row| Ok((row.get(0)?, row.get(1)?)));
            counts.unwrap()
        });
        assert_eq!(counts, [(3, 0), (3, 0), (3, 0), (3, 3)]);
    }
}
