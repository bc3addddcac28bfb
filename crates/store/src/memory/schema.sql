-- The index of one workspace's notes. All of it is made from files and can be thrown away; so there are no
-- migrations: a file of another version is deleted and built anew.

CREATE TABLE origin (
    -- The folder whose notes these are.
    root TEXT NOT NULL
) STRICT;

CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    -- Relative to the root, with slashes.
    path TEXT NOT NULL UNIQUE,
    -- What the file looked like when it was read; `content` is a hash of it.
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    content INTEGER NOT NULL,
    -- Where it belongs. Empty: of no domain (and so of the whole workspace), of no repository, of no topic.
    workspace TEXT NOT NULL,
    domain TEXT NOT NULL,
    repository TEXT NOT NULL,
    topic TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    -- YYYY-MM-DD, or empty.
    date TEXT NOT NULL,
    status TEXT NOT NULL COLLATE NOCASE,
    category TEXT NOT NULL COLLATE NOCASE,
    -- One a line; `tag` has them for looking up.
    tags TEXT NOT NULL,
    -- JSON, or empty.
    front_matter TEXT NOT NULL,
    -- What is wrong with the file, or empty.
    problem TEXT NOT NULL
) STRICT;

-- Everything that documents are chosen by, so that a list of them is made from this index alone.
CREATE INDEX document_by_kind ON document (
    workspace, kind, date, path, domain, repository, topic, status, category, mtime_ns
);

CREATE INDEX document_by_place ON document (workspace, domain, repository, topic);

CREATE INDEX document_troubled ON document (workspace) WHERE problem <> '';

CREATE TABLE tag (
    tag TEXT NOT NULL COLLATE NOCASE,
    document INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, document)
) STRICT, WITHOUT ROWID;

CREATE INDEX tag_by_document ON tag (document);

-- `whole` has the words that are split in the other columns (getContext), as one word each.
CREATE VIRTUAL TABLE words USING fts5 (
    title, tags, path, body, whole,
    tokenize = "unicode61 remove_diacritics 2",
    -- `in*` would else be looked up as each of the thousand words that begin so.
    prefix = '2 3 4'
);

INSERT INTO words (words, rank) VALUES ('rank', 'bm25(8.0, 6.0, 3.0, 1.0, 1.0)');
