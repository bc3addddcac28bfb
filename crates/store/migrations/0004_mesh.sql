-- The signal mesh. Ids are 16 bytes, times microseconds since 1970. What kinds, surfaces and states there are is for
-- the daemon to know, except where said.

-- Every signal that was accepted, until the history lets go of it.
CREATE TABLE signal (
    -- AUTOINCREMENT: a number that a client holds as its cursor must never come again.
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             BLOB    NOT NULL UNIQUE,
    trace          BLOB    NOT NULL,
    kind           TEXT    NOT NULL,
    sender         TEXT    NOT NULL,
    recipient      TEXT    NOT NULL,
    body           TEXT    NOT NULL,
    reply_to       BLOB,
    sent_at_us     INTEGER NOT NULL,
    expires_at_us  INTEGER,
    drained_at_us  INTEGER,
    recalled_at_us INTEGER,
    expired_at_us  INTEGER,
    -- It was given before, and may have arrived.
    redelivered    INTEGER NOT NULL DEFAULT 0,
    rings          INTEGER NOT NULL,
    -- 0: waits to be drained. 1: drained, and not known to have arrived. 2: over: arrived, recalled or expired.
    stage          INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What waits for an agent, what it may not have received, what is over.
CREATE INDEX signal_stage ON signal (recipient, stage, seq);
-- What comes after a cursor; the history.
CREATE INDEX signal_recipient ON signal (recipient, seq);
CREATE INDEX signal_sender ON signal (sender, seq);
CREATE INDEX signal_expiring ON signal (expires_at_us, recipient, rings) WHERE stage = 0 AND expires_at_us NOT NULL;
-- What is too old for the history.
CREATE INDEX signal_over ON signal (sent_at_us) WHERE stage = 2;
-- The oldest that gives way to a new one.
CREATE INDEX signal_silent ON signal (recipient, seq) WHERE stage = 0 AND rings = 0;

-- How many signals each agent has, so that nobody has to count them.
CREATE TABLE mailbox (
    agent     TEXT    NOT NULL PRIMARY KEY,
    -- Of stage 0, and those among them that ring.
    pending   INTEGER NOT NULL DEFAULT 0,
    ringing   INTEGER NOT NULL DEFAULT 0,
    -- Of stage 2.
    over      INTEGER NOT NULL DEFAULT 0,
    -- The highest number of a drained one that the history has let go of: an older cursor is too old.
    forgotten INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Who owes whom what, since which signal. It goes when its signal does.
CREATE TABLE obligation (
    -- The signal's.
    seq                INTEGER PRIMARY KEY,
    signal             BLOB    NOT NULL UNIQUE,
    trace              BLOB    NOT NULL,
    kind               TEXT    NOT NULL,
    debtor             TEXT    NOT NULL,
    creditor           TEXT    NOT NULL,
    -- open, heard, done, recalled, expired; the latter three have a closed_at_us.
    state              TEXT    NOT NULL,
    action_required    INTEGER NOT NULL,
    reply_required     INTEGER NOT NULL,
    ends_on_drain      INTEGER NOT NULL,
    opened_at_us       INTEGER NOT NULL,
    due_at_us          INTEGER,
    heard_at_us        INTEGER,
    closed_at_us       INTEGER,
    -- The signal that was the reply.
    closed_by          BLOB,
    bucket             TEXT    NOT NULL,
    overdue_at_us      INTEGER,
    escalated_at_us    INTEGER,
    wake_attempt_count INTEGER NOT NULL,
    wake_ring_count    INTEGER NOT NULL,
    last_wake_at_us    INTEGER,
    last_wake_path     TEXT,
    last_wake_result   TEXT
) STRICT;

CREATE INDEX obligation_live ON obligation (debtor) WHERE closed_at_us IS NULL;
CREATE INDEX obligation_debtor ON obligation (debtor);
CREATE INDEX obligation_creditor ON obligation (creditor);

-- Every agent that has ever started, with its newest session.
CREATE TABLE agent (
    name            TEXT    NOT NULL PRIMARY KEY,
    session         BLOB    NOT NULL,
    surface         TEXT    NOT NULL,
    workspace       TEXT    NOT NULL,
    transport       TEXT    NOT NULL,
    surface_session TEXT,
    -- JSON that only the daemon reads.
    facts           TEXT    NOT NULL,
    mcp_session     BLOB,
    instance        BLOB,
    started_at_us   INTEGER NOT NULL,
    seen_at_us      INTEGER NOT NULL,
    wrapped_at_us   INTEGER
) STRICT, WITHOUT ROWID;

-- The newest outcomes of ringing.
CREATE TABLE bell (
    number  INTEGER PRIMARY KEY,
    at_us   INTEGER NOT NULL,
    agent   TEXT    NOT NULL,
    session BLOB    NOT NULL,
    path    TEXT    NOT NULL,
    result  TEXT    NOT NULL,
    signal  BLOB,
    kind    TEXT    NOT NULL,
    trace   BLOB,
    -- To the confirmation.
    millis  INTEGER
) STRICT;

CREATE INDEX bell_agent ON bell (agent);
