//! Finding documents: by words, ranked, with a snippet of each; or by what they are, newest first.

use std::collections::HashMap;

use rusqlite::{Row, types::Value};

use super::{MemoryError, MemoryIndex, query::NoteQuery};
use crate::split::seamless;

/// What is known of a document without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentEntry {
    pub path: String,
    pub size: i64,
    pub mtime_ns: i64,
    pub workspace: String,
    pub domain: String,
    pub repository: String,
    pub topic: String,
    pub kind: String,
    pub title: String,
    pub date: String,
    pub status: String,
    pub category: String,
    pub tags: Vec<String>,
    pub front_matter: String,
    pub problem: String,
}

/// Which documents to look at. What is empty keeps nothing out.
#[derive(Clone, Debug, Default)]
pub struct DocumentFilter {
    pub workspace: Option<String>,
    pub domain: Option<String>,
    pub repository: Option<String>,
    pub reach: ScopeReach,
    pub topic: Option<String>,
    pub kinds: Vec<String>,
    /// One of them is enough.
    pub tags: Vec<String>,
    pub statuses: Vec<String>,
    pub categories: Vec<String>,
    /// Only files that something is wrong with.
    pub troubled: bool,
}

/// How far a scope reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScopeReach {
    /// What is in it and below it.
    #[default]
    Below,
    /// That, and what its domain and its workspace say for all that is in them.
    AboveAndBelow,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct FoundNotes {
    /// Best first.
    pub hits: Vec<DocumentHit>,
    /// How many there are in all.
    pub total: u32,
    pub matched: MatchMode,
    /// Words of the query that were not looked for, because there were too many.
    pub ignored_words: usize,
}

#[derive(Clone, Debug)]
pub struct DocumentHit {
    pub entry: DocumentEntry,
    /// Around the words that were found, which stand between « and ».
    pub snippet: String,
}

/// In what sense the documents match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    /// They have all the words.
    All,
    /// None has all of them; these have some.
    Any,
    /// There was no word to look for; these are the newest.
    Newest,
}

/// Tokens of a snippet; FTS5 takes up to 64.
const SNIPPET_TOKENS: i64 = 24;

const COLUMNS: &str = "d.path, d.size, d.mtime_ns, d.workspace, d.domain, d.repository, d.topic, d.kind, d.title,
                       d.date, d.status, d.category, d.tags, d.front_matter, d.problem";

impl MemoryIndex {
    /// Searches for words. Any text is a query. If no document has all words, those that have some are returned.
    pub fn search(&self, text: &str, filter: &DocumentFilter, limit: usize) -> Result<FoundNotes, MemoryError> {
        let query = NoteQuery::read(text);
        let found = |matched, (hits, total)| FoundNotes { hits, total, matched, ignored_words: query.ignored };
        let search = || {
            let (Some(all), Some(any)) = (query.all(), query.any()) else {
                return Ok(found(MatchMode::Newest, self.newest(&query, filter, limit)?));
            };
            let strict = self.matching(&all, filter, limit)?;
            if strict.1 > 0 || query.len() < 2 {
                return Ok(found(MatchMode::All, strict));
            }
            Ok(found(MatchMode::Any, self.matching(&any, filter, limit)?))
        };
        search().map_err(|error| self.cannot_read(error))
    }

    /// Returns documents, newest first, and how many there are in all.
    pub fn entries(&self, filter: &DocumentFilter, limit: usize) -> Result<(Vec<DocumentEntry>, u32), MemoryError> {
        self.listed(filter, limit, "d.date DESC, d.path DESC").map_err(|error| self.cannot_read(error))
    }

    /// Returns documents, those that were written last first, and how many there are in all. What was written on one
    /// day is sorted by its date: a fresh clone has written everything at once.
    pub fn recent(&self, filter: &DocumentFilter, limit: usize) -> Result<(Vec<DocumentEntry>, u32), MemoryError> {
        let order = "d.mtime_ns / 86400000000000 DESC, d.date DESC, d.mtime_ns DESC, d.path DESC";
        self.listed(filter, limit, order).map_err(|error| self.cannot_read(error))
    }

    /// Returns the document at a path.
    pub fn entry(&self, path: &str) -> Result<Option<DocumentEntry>, MemoryError> {
        let sql = format!("SELECT {COLUMNS} FROM document d WHERE d.path = ?1");
        let query = || self.connection.prepare_cached(&sql)?.query_map([path], entry)?.next().transpose();
        query().map_err(|error| self.cannot_read(error))
    }

    /// Returns each place that has documents: workspace, domain, repository, topic, and how many.
    pub fn places(&self) -> Result<Vec<([String; 4], u32)>, MemoryError> {
        let sql = "SELECT workspace, domain, repository, topic, count(*) FROM document
                   GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";
        let query = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement
                .query_map([], |row| Ok(([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?], row.get(4)?)))?;
            rows.collect::<Result<_, _>>()
        };
        query().map_err(|error| self.cannot_read(error))
    }

    fn matching(
        &self,
        expression: &str,
        filter: &DocumentFilter,
        limit: usize,
    ) -> rusqlite::Result<(Vec<DocumentHit>, u32)> {
        let (conditions, values) = conditions(filter, vec![Value::from(expression.to_owned())]);
        // The plus keeps SQLite from looking the words up once for each document that fits.
        let chosen = match conditions.as_str() {
            "" => String::new(),
            some => format!(" AND +rowid IN (SELECT d.id FROM document d WHERE true{some})"),
        };
        let from = format!("FROM words WHERE words MATCH ?1{chosen}");
        // The snippets come in a second step: in one, SQLite would make them for all rows that it sorts. It sorts all of
        // them whatever the limit is, so they are counted on the way.
        let sql = format!("SELECT rowid {from} ORDER BY rank");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(&values))?;
        let (mut ids, mut total): (Vec<i64>, u32) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            if ids.len() < limit {
                ids.push(row.get(0)?);
            }
            total += 1;
        }
        // All in one go: with a prefix, each look at the index gathers all the words that begin so.
        let chosen: Vec<String> = ids.iter().map(i64::to_string).collect();
        let sql = format!(
            "SELECT {COLUMNS}, snippet(words, 3, '«', '»', '…', {SNIPPET_TOKENS}), d.id
             FROM words JOIN document d ON d.id = words.rowid WHERE words MATCH ?1 AND +words.rowid IN ({})",
            chosen.join(",")
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map([expression], |row| Ok((row.get::<_, i64>("id")?, hit(row)?)))?;
        let mut hits: HashMap<i64, DocumentHit> = rows.collect::<Result<_, _>>()?;
        let hits = ids.iter().filter_map(|id| hits.remove(id)).collect();
        Ok((hits, total))
    }

    fn newest(
        &self,
        query: &NoteQuery,
        filter: &DocumentFilter,
        limit: usize,
    ) -> rusqlite::Result<(Vec<DocumentHit>, u32)> {
        let (mut conditions, mut values) = conditions(filter, Vec::new());
        if let Some(unwanted) = query.unwanted() {
            values.push(Value::from(unwanted));
            let n = values.len();
            conditions.push_str(&format!(" AND d.id NOT IN (SELECT rowid FROM words WHERE words MATCH ?{n})"));
        }
        let (entries, total) = self.rows(&conditions, &values, limit, "d.date DESC, d.path DESC")?;
        Ok((entries.into_iter().map(|entry| DocumentHit { entry, snippet: String::new() }).collect(), total))
    }

    fn listed(
        &self,
        filter: &DocumentFilter,
        limit: usize,
        order: &str,
    ) -> rusqlite::Result<(Vec<DocumentEntry>, u32)> {
        let (conditions, values) = conditions(filter, Vec::new());
        self.rows(&conditions, &values, limit, order)
    }

    fn rows(
        &self,
        conditions: &str,
        values: &[Value],
        limit: usize,
        order: &str,
    ) -> rusqlite::Result<(Vec<DocumentEntry>, u32)> {
        let from = format!("FROM document d WHERE true{conditions}");
        // The inner part needs nothing but an index.
        let sql = format!(
            "SELECT {COLUMNS} FROM document d WHERE d.id IN (SELECT d.id {from} ORDER BY {order} LIMIT {limit})
             ORDER BY {order}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let entries: Vec<DocumentEntry> =
            statement.query_map(rusqlite::params_from_iter(values), entry)?.collect::<Result<_, _>>()?;
        if entries.len() < limit {
            let total = entries.len() as u32;
            return Ok((entries, total));
        }
        let sql = format!("SELECT count(*) {from}");
        let total =
            self.connection.prepare_cached(&sql)?.query_row(rusqlite::params_from_iter(values), |row| row.get(0))?;
        Ok((entries, total))
    }
}

/// Returns the conditions of a filter, each with ` AND ` before it, and the values that were there with theirs behind.
fn conditions(filter: &DocumentFilter, mut values: Vec<Value>) -> (String, Vec<Value>) {
    let mut sql = String::new();
    let mut add = |condition: &str, given: &[&String]| {
        let marks: Vec<String> = (0..given.len()).map(|i| format!("?{}", values.len() + 1 + i)).collect();
        sql.push_str(" AND ");
        sql.push_str(&condition.replace("{}", &marks.join(", ")));
        values.extend(given.iter().map(|value| Value::from((*value).clone())));
    };
    let above = filter.reach == ScopeReach::AboveAndBelow;
    if let Some(workspace) = &filter.workspace {
        add("d.workspace = {}", &[workspace]);
    }
    if let Some(domain) = &filter.domain {
        add(if above { "d.domain IN ('', {})" } else { "d.domain = {}" }, &[domain]);
    }
    if let Some(repository) = &filter.repository {
        add(if above { "d.repository IN ('', {})" } else { "d.repository = {}" }, &[repository]);
    }
    if let Some(topic) = &filter.topic {
        add("d.topic = {}", &[topic]);
    }
    let lists = [
        ("d.kind IN ({})", &filter.kinds),
        ("d.status IN ({})", &filter.statuses),
        ("d.category IN ({})", &filter.categories),
        ("d.id IN (SELECT document FROM tag WHERE tag IN ({}))", &filter.tags),
    ];
    for (condition, list) in lists {
        if !list.is_empty() {
            add(condition, &list.iter().collect::<Vec<_>>());
        }
    }
    if filter.troubled {
        add("d.problem <> ''", &[]);
    }
    (sql, values)
}

fn hit(row: &Row<'_>) -> rusqlite::Result<DocumentHit> {
    let snippet: String = row.get(15)?;
    // A snippet is one line: the text's own lines mean nothing once it is cut.
    let snippet = seamless(&snippet).split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(DocumentHit { entry: entry(row)?, snippet })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<DocumentEntry> {
    let tags: String = row.get(12)?;
    Ok(DocumentEntry {
        path: row.get(0)?,
        size: row.get(1)?,
        mtime_ns: row.get(2)?,
        workspace: row.get(3)?,
        domain: row.get(4)?,
        repository: row.get(5)?,
        topic: row.get(6)?,
        kind: row.get(7)?,
        title: row.get(8)?,
        date: row.get(9)?,
        status: row.get(10)?,
        category: row.get(11)?,
        tags: tags.lines().map(str::to_owned).collect(),
        front_matter: row.get(13)?,
        problem: row.get(14)?,
    })
}
