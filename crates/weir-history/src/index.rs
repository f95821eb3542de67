//! The SQLite file with what was read of the results files.

use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use weir_results::Run;

use crate::filter::Filter;
use crate::point::{PointHistory, PointKey, PointOfRun, conditions, lost};
use crate::run::{RunEntry, RunState};
use crate::scan::{FoundFile, Stamp};

/// Changes when the tables or the texts in them do; an index of another version is built again.
const VERSION: i64 = 3;
/// `WEIR`.
const APPLICATION: i64 = 0x5745_4952;

const TABLES: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE,
    bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    short TEXT NOT NULL,
    name TEXT NOT NULL,
    date TEXT NOT NULL,
    host TEXT NOT NULL,
    peer TEXT,
    weir_version TEXT NOT NULL,
    cases INTEGER NOT NULL,
    not_measured INTEGER NOT NULL,
    engines TEXT NOT NULL,
    damaged_lines INTEGER NOT NULL,
    is_cut INTEGER NOT NULL,
    unreadable TEXT
) STRICT;
CREATE TABLE figure (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    engine TEXT NOT NULL,
    test TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    conditions TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    value REAL,
    lost INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX figure_by_point ON figure (engine, test, size_bytes, conditions);
";

/// What an index holds.
pub(crate) struct Index(Connection);

impl Index {
    /// Opens an index that exists and is whole. `None`: it has to be built again.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let connection = Connection::open(path).ok()?;
        let number = |pragma| connection.query_row(pragma, [], |row| row.get::<_, i64>(0)).ok();
        let is_current =
            number("PRAGMA application_id")? == APPLICATION && number("PRAGMA user_version")? == VERSION;
        let check: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).ok()?;
        (is_current && check == "ok").then_some(())?;
        Self::prepared(connection).ok()
    }

    /// Creates an index at a path where there is nothing.
    pub(crate) fn create(path: &Path) -> rusqlite::Result<Self> {
        Self::with_tables(Connection::open(path)?)
    }

    pub(crate) fn in_memory() -> rusqlite::Result<Self> {
        Self::with_tables(Connection::open_in_memory()?)
    }

    fn with_tables(connection: Connection) -> rusqlite::Result<Self> {
        connection.execute_batch(&format!(
            "BEGIN; {TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
        Self::prepared(connection)
    }

    fn prepared(connection: Connection) -> rusqlite::Result<Self> {
        connection.pragma_update(None, "foreign_keys", true)?;
        // The files are the truth: what a power failure takes from the index is read again.
        connection.pragma_update(None, "synchronous", "OFF")?;
        Ok(Self(connection))
    }

    /// Brings the index up to date with the files: reads new and changed ones, and forgets those that are gone.
    pub(crate) fn update(&mut self, folder: &Path, files: &[FoundFile]) -> rusqlite::Result<()> {
        let transaction = self.0.transaction()?;
        forget_others(&transaction, files)?;
        let mut select = transaction.prepare("SELECT bytes, modified_ns, inode FROM run WHERE path = ?1")?;
        for file in files {
            let known = select
                .query_row([bytes(&file.path)], |row| {
                    Ok(Stamp { bytes: row.get(0)?, modified_ns: row.get(1)?, inode: row.get(2)? })
                })
                .optional()?;
            if known != Some(file.stamp) {
                enter(&transaction, folder, file)?;
            }
        }
        drop(select);
        transaction.commit()
    }

    /// Returns the runs that a filter takes, in order of time.
    pub(crate) fn runs(&self, filter: &Filter) -> rusqlite::Result<Vec<RunEntry>> {
        let mut statement = self.0.prepare(&format!("SELECT {ENTRY} FROM run ORDER BY date, path"))?;
        let mut runs = Vec::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, run) = (row.get::<_, i64>(0)?, entry(row)?);
            if filter.takes_run(&run.name, &run.host, run.peer.as_deref())
                && (!filter.has_cases() || self.has_case(id, filter)?)
            {
                runs.push(run);
            }
        }
        Ok(runs)
    }

    fn has_case(&self, run: i64, filter: &Filter) -> rusqlite::Result<bool> {
        let mut statement =
            self.0.prepare("SELECT DISTINCT engine, test, size_bytes FROM figure WHERE run = ?1")?;
        let mut rows = statement.query([run])?;
        while let Some(row) = rows.next()? {
            let (engine, test): (String, String) = (row.get(0)?, row.get(1)?);
            if filter.takes_case(&engine, &test, row.get::<_, i64>(2)? as u64) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the points that a filter takes, each with its runs in order of time.
    pub(crate) fn points(&self, filter: &Filter) -> rusqlite::Result<Vec<PointHistory>> {
        let mut statement = self.0.prepare(&format!(
            "SELECT {ENTRY}, engine, test, size_bytes, conditions, value, lost
             FROM figure JOIN run ON run.id = figure.run WHERE value IS NOT NULL
             ORDER BY test, conditions, size_bytes, engine, host, date, path, number"
        ))?;
        let mut points: Vec<PointHistory> = Vec::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let at = |column: usize| ENTRY_COLUMNS + column;
            let (engine, test): (String, String) = (row.get(at(0))?, row.get(at(1))?);
            let size_bytes = row.get::<_, i64>(at(2))? as u64;
            let run = entry(row)?;
            if !filter.takes_case(&engine, &test, size_bytes)
                || !filter.takes_run(&run.name, &run.host, run.peer.as_deref())
            {
                continue;
            }
            let (conditions, host) = (row.get(at(3))?, run.host.clone());
            let key = PointKey { engine, test, size_bytes, conditions, host };
            let (value, lost) = (row.get(at(4))?, row.get::<_, i64>(at(5))? as u64);
            add(&mut points, key, run, value, lost);
        }
        Ok(points)
    }
}

/// Adds a repeat, which is of the last point and run or of new ones.
fn add(points: &mut Vec<PointHistory>, key: PointKey, run: RunEntry, value: f64, lost: u64) {
    if points.last().is_none_or(|point| point.key != key) {
        points.push(PointHistory { key, runs: Vec::new() });
    }
    let Some(point) = points.last_mut() else { return };
    match point.runs.last_mut().filter(|it| it.run.path == run.path) {
        Some(last) => {
            last.values.push(value);
            last.lost += lost;
        }
        None => point.runs.push(PointOfRun { run, values: vec![value], lost }),
    }
}

const ENTRY: &str = "run.id, path, short, name, date, host, peer, weir_version, cases, not_measured, engines, \
     damaged_lines, is_cut, unreadable";
const ENTRY_COLUMNS: usize = 14;

fn entry(row: &Row<'_>) -> rusqlite::Result<RunEntry> {
    let state = match (row.get::<_, Option<String>>(13)?, row.get::<_, i64>(11)?, row.get::<_, bool>(12)?) {
        (Some(reason), ..) => RunState::Unreadable(reason),
        (None, 0, false) => RunState::Whole,
        (None, 0, true) => RunState::Cut,
        (None, lines, _) => RunState::Damaged(lines as u64),
    };
    Ok(RunEntry {
        path: path_of(row.get(1)?),
        id: row.get(2)?,
        name: row.get(3)?,
        date: row.get(4)?,
        host: row.get(5)?,
        peer: row.get(6)?,
        weir_version: row.get(7)?,
        cases: row.get::<_, i64>(8)? as u64,
        not_measured: row.get::<_, i64>(9)? as u64,
        engines: row.get(10)?,
        state,
    })
}

fn forget_others(transaction: &Transaction<'_>, files: &[FoundFile]) -> rusqlite::Result<()> {
    let known: Vec<Vec<u8>> = transaction
        .prepare("SELECT path FROM run")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for path in known {
        if files.binary_search_by(|file| file.path.cmp(&path_of(path.clone()))).is_err() {
            transaction.execute("DELETE FROM run WHERE path = ?1", [path])?;
        }
    }
    Ok(())
}

/// Reads a file into the index.
fn enter(transaction: &Transaction<'_>, folder: &Path, file: &FoundFile) -> rusqlite::Result<()> {
    let found = Run::salvage(folder.join(&file.path));
    let run = RunEntry::new(&file.path, &found);
    let (damaged, is_cut, unreadable) = match &run.state {
        RunState::Whole => (0, false, None),
        RunState::Cut => (0, true, None),
        RunState::Damaged(lines) => (*lines as i64, false, None),
        RunState::Unreadable(reason) => (0, false, Some(reason)),
    };
    transaction.execute("DELETE FROM run WHERE path = ?1", [bytes(&file.path)])?;
    let stamp = file.stamp;
    transaction
        .prepare(
            "INSERT INTO run (path, bytes, modified_ns, inode, short, name, date, host, peer, weir_version, cases,
                 not_measured, engines, damaged_lines, is_cut, unreadable)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            bytes(&file.path),
            stamp.bytes,
            stamp.modified_ns,
            stamp.inode,
            run.id,
            run.name,
            run.date,
            run.host,
            run.peer,
            run.weir_version,
            run.cases as i64,
            run.not_measured as i64,
            run.engines,
            damaged,
            is_cut,
            unreadable,
        ])?;
    let id = transaction.last_insert_rowid();
    let mut insert = transaction.prepare(
        "INSERT INTO figure (run, number, engine, test, size_bytes, conditions, repeat, value, lost)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for (number, case) in (1_i64..).zip(found.iter().flat_map(|it| &it.run.cases)) {
        let point = &case.point;
        insert.execute(params![
            id,
            number,
            point.engine,
            point.test.name(),
            point.size_bytes as i64,
            conditions(case),
            case.conditions.repeat,
            case.headline().filter(|it| it.is_finite()),
            lost(case) as i64,
        ])?;
    }
    Ok(())
}

/// A path as SQLite has it: its bytes, since it need not be UTF-8.
fn bytes(path: &Path) -> Value {
    use std::os::unix::ffi::OsStrExt as _;
    Value::Blob(path.as_os_str().as_bytes().to_vec())
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}
