-- Clients' sessions, which outlive the daemon. Texts are JSON that only the daemon reads.
CREATE TABLE session (
    id          BLOB    NOT NULL PRIMARY KEY,
    destination TEXT    NOT NULL,
    -- How its client opened it; never changes.
    opening     TEXT    NOT NULL,
    -- What its link has to say of it.
    state       TEXT,
    -- What the hub has, and how often that has changed.
    hub         TEXT,
    hub_version INTEGER NOT NULL DEFAULT 0,
    used_at_us  INTEGER NOT NULL
) STRICT;

-- Events that a client may ask for again. Stream 0 is the session's own, the others were POSTs.
CREATE TABLE session_event (
    session BLOB    NOT NULL,
    stream  INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    bytes   BLOB    NOT NULL,
    PRIMARY KEY (session, stream, number)
) STRICT, WITHOUT ROWID;
