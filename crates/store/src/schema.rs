//! The migrations and how they are applied. What is in the tables is said in the SQL files themselves.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::connection::StoreOpenError;

/// All migrations in order; the number of those applied is the database's `user_version`. A migration that has
/// been released is never edited: what it did is done.
const MIGRATIONS: &[SchemaMigration] = &[
    SchemaMigration { name: "0001_quiet", sql: include_str!("../migrations/0001_quiet.sql") },
    SchemaMigration { name: "0002_era", sql: include_str!("../migrations/0002_era.sql") },
    SchemaMigration { name: "0003_session", sql: include_str!("../migrations/0003_session.sql") },
    SchemaMigration { name: "0004_mesh", sql: include_str!("../migrations/0004_mesh.sql") },
    SchemaMigration { name: "0005_gate", sql: include_str!("../migrations/0005_gate.sql") },
    SchemaMigration { name: "0006_listed", sql: include_str!("../migrations/0006_listed.sql") },
    SchemaMigration { name: "0007_mesh_ends", sql: include_str!("../migrations/0007_mesh_ends.sql") },
    SchemaMigration { name: "0008_audit_head", sql: include_str!("../migrations/0008_audit_head.sql") },
];

struct SchemaMigration {
    name: &'static str,
    sql: &'static str,
}

/// Brings the schema up to date, one transaction for each migration that is missing.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreOpenError> {
    apply(connection, path, MIGRATIONS)
}

fn apply(connection: &mut Connection, path: &Path, migrations: &[SchemaMigration]) -> Result<(), StoreOpenError> {
    let known = migrations.len() as i64;
    let found = version(connection).map_err(|source| StoreOpenError::Open { path: path.to_owned(), source })?;
    if found > known {
        return Err(StoreOpenError::Newer { path: path.to_owned(), found, known });
    }
    for (number, migration) in (1..).zip(migrations).filter(|(number, _)| *number > found) {
        apply_one(connection, number, migration.sql).map_err(|source| StoreOpenError::Migrate {
            path: path.to_owned(),
            migration: migration.name,
            source,
        })?;
    }
    Ok(())
}

fn apply_one(connection: &mut Connection, number: i64, sql: &str) -> rusqlite::Result<()> {
    // The version is read under the lock, as another process may be migrating at this moment.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&transaction)? >= number {
        return Ok(());
    }
    transaction.execute_batch(sql)?;
    transaction.pragma_update(None, "user_version", number)?;
    transaction.commit()
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TWO: &[SchemaMigration] = &[
        SchemaMigration { name: "0001_a", sql: "CREATE TABLE a (x TEXT) STRICT;" },
        SchemaMigration { name: "0002_b", sql: "INSERT INTO a VALUES ('b'); CREATE TABLE b (x TEXT) STRICT;" },
    ];

    fn apply_to(connection: &mut Connection, migrations: &[SchemaMigration]) -> Result<(), StoreOpenError> {
        apply(connection, Path::new("test.db"), migrations)
    }

    fn count(connection: &Connection, sql: &str) -> i64 {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_migration_is_applied_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply_to(&mut connection, &TWO[..1]).unwrap();
        assert_eq!(version(&connection).unwrap(), 1);
        apply_to(&mut connection, TWO).unwrap();
        apply_to(&mut connection, TWO).unwrap();
        assert_eq!(version(&connection).unwrap(), 2);
        assert_eq!(count(&connection, "SELECT count(*) FROM a"), 1);
    }

    #[test]
    fn a_migration_that_fails_leaves_no_trace() {
        let broken = SchemaMigration { name: "0002_broken", sql: "CREATE TABLE b (x TEXT) STRICT; nonsense" };
        let mut connection = Connection::open_in_memory().unwrap();
        let [first, _] = TWO else { panic!("there are two") };
        let first = SchemaMigration { ..*first };

        let error = apply_to(&mut connection, &[first, broken]).unwrap_err();

        assert_eq!(error.to_string(), "cannot migrate database \"test.db\" with 0002_broken");
        assert_eq!(version(&connection).unwrap(), 1);
        assert_eq!(count(&connection, "SELECT count(*) FROM sqlite_schema WHERE name = 'b'"), 0);
    }

    #[test]
    fn a_database_of_each_version_is_brought_up_to_date_and_keeps_its_rows() {
        for version_before in 0..MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            apply_to(&mut connection, &MIGRATIONS[..version_before]).unwrap();
            let quiet = "INSERT INTO quiet VALUES ('fs', 'server', '1.0', 5)";
            let kept = usize::from(version_before >= 1);
            if kept == 1 {
                connection.execute(quiet, []).unwrap();
            }
            apply_to(&mut connection, MIGRATIONS).unwrap();
            assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() as i64);
            assert_eq!(count(&connection, "SELECT count(*) FROM quiet"), kept as i64, "from {version_before}");
            assert_eq!(count(&connection, "SELECT count(*) FROM era"), 0, "from {version_before}");
        }
    }

    #[test]
    fn every_file_is_in_the_list_at_its_place() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let mut files: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let listed: Vec<String> = MIGRATIONS.iter().map(|migration| format!("{}.sql", migration.name)).collect();
        assert_eq!(files, listed);
        for (number, file) in (1..).zip(files) {
            assert!(file.starts_with(&format!("{number:04}_")), "{file}");
        }
    }

    #[test]
    fn every_table_is_strict() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply_to(&mut connection, MIGRATIONS).unwrap();
        let lax = "SELECT count(*) FROM pragma_table_list
                   WHERE schema = 'main' AND NOT strict AND name NOT LIKE 'sqlite_%'";
        assert_eq!(count(&connection, lax), 0);
    }
}
