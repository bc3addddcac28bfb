//! Full-text search over the tools of the hub: an index in memory, made anew whenever a list of tools changes.

use rusqlite::{Connection, params};

use crate::split::seamed;

/// What a tool is found by.
#[derive(Clone, Debug)]
pub struct ToolText<'a> {
    pub name: &'a str,
    pub description: &'a str,
    /// The names of its arguments, and what is said of them.
    pub arguments: &'a str,
}

/// Why tools cannot be searched.
#[derive(Debug, thiserror::Error)]
#[error("cannot search the tools")]
pub struct ToolIndexError(#[from] rusqlite::Error);

pub struct ToolIndex {
    connection: Connection,
}

impl ToolIndex {
    pub fn build<'a>(tools: impl IntoIterator<Item = ToolText<'a>>) -> Result<Self, ToolIndexError> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE VIRTUAL TABLE tool USING fts5(name, description, arguments, content='', tokenize='porter unicode61')",
        )?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction
                .prepare("INSERT INTO tool (rowid, name, description, arguments) VALUES (?1, ?2, ?3, ?4)")?;
            for (at, tool) in (0_i64..).zip(tools) {
                insert.execute(params![at, seamed(tool.name), seamed(tool.description), seamed(tool.arguments)])?;
            }
        }
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// The places of the tools that fit, the best first: those with all of the words before those with some.
    pub fn find(&self, query: &str, limit: usize) -> Result<Vec<usize>, ToolIndexError> {
        // Each word goes over in quotes, so that nothing that is typed is an error.
        let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(|word| format!("\"{}\"*", seamed(word))).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: Vec<usize> = Vec::new();
        for operator in [" AND ", " OR "] {
            let mut select = self.connection.prepare(
                "SELECT rowid FROM tool WHERE tool MATCH ?1 ORDER BY bm25(tool, 10.0, 2.0, 1.0), rowid LIMIT ?2",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = select.query_map(params![words.join(operator), limit], |row| row.get::<_, i64>(0))?;
            for row in rows {
                let at = usize::try_from(row?).unwrap_or_default();
                if !found.contains(&at) {
                    found.push(at);
                }
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> ToolIndex {
        let tools = [
            ("files__read_file", "Reads a file and returns what is in it", "path encoding"),
            ("git__log", "Shows the history of commits", "repository maxCount"),
            ("time__convert", "Converts a time between zones", "source_timezone target_timezone"),
        ];
        ToolIndex::build(tools.map(|(name, description, arguments)| ToolText { name, description, arguments })).unwrap()
    }

    // B-27
    #[test]
    fn tools_are_found_by_name_by_description_and_by_argument() {
        let index = index();
        for (query, first) in [
            ("read", 0),
            ("READ FILE", 0),
            ("commit history", 1),
            ("max count", 1),
            ("timezone", 2),
            ("convert nonsense", 2),
            ("converting", 2),
        ] {
            assert_eq!(index.find(query, 5).unwrap().first(), Some(&first), "{query}");
        }
        assert!(index.find("zebra", 5).unwrap().is_empty());
        assert_eq!(index.find("a", 1).unwrap().len(), 1);
    }

    // B-27
    #[test]
    fn no_query_is_an_error() {
        let index = index();
        for query in ["", "\"", "* OR", "name:x", "a\" OR \"b", "NEAR(", "-x", "é\u{0}"] {
            index.find(query, 5).unwrap();
        }
    }
}
