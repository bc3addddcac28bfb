-- The gate. Ids are 16 bytes, digests and hashes 32, times microseconds since 1970. Of states only those are known here
-- that an index or a comparison needs. What has ended stays until it is trimmed.

-- Who asked for access, and what was decided. From APPROVED on, its state is that of its grant.
CREATE TABLE access_request (
    id             BLOB    NOT NULL PRIMARY KEY,
    agent          TEXT    NOT NULL,
    -- Names, parted by blanks.
    scopes         TEXT    NOT NULL,
    -- JSON that only the daemon reads.
    roots          TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    ttl_s          INTEGER NOT NULL,
    -- REQUESTED, PENDING (these two are open), APPROVED, ACTIVE, DENIED, EXPIRED, REVOKED.
    state          TEXT    NOT NULL,
    created_at_us  INTEGER NOT NULL,
    -- When it can no longer be approved.
    expires_at_us  INTEGER NOT NULL,
    decided_at_us  INTEGER,
    decided_by     TEXT,
    denied_because TEXT,
    grant_id       BLOB,
    claim_hash     BLOB    NOT NULL,
    -- The token was given to whoever asked.
    claimed        INTEGER NOT NULL,
    -- JSON that only the daemon reads.
    asker          TEXT    NOT NULL
) STRICT;

CREATE INDEX access_request_open ON access_request (agent) WHERE state IN ('REQUESTED', 'PENDING');
CREATE INDEX access_request_expiring ON access_request (expires_at_us) WHERE state IN ('REQUESTED', 'PENDING');
CREATE INDEX access_request_created ON access_request (created_at_us);
CREATE INDEX access_request_agent ON access_request (agent, created_at_us);
CREATE INDEX access_request_grant ON access_request (grant_id) WHERE grant_id NOT NULL;

-- What agents may do. One that was narrowed from another is weaker, and ends with it.
CREATE TABLE access_grant (
    id               BLOB    NOT NULL PRIMARY KEY,
    request_id       BLOB,
    parent           BLOB,
    agent            TEXT    NOT NULL,
    scopes           TEXT    NOT NULL,
    roots            TEXT    NOT NULL,
    -- APPROVED, ACTIVE; and with an ended_at_us EXPIRED, REVOKED.
    state            TEXT    NOT NULL,
    created_at_us    INTEGER NOT NULL,
    expires_at_us    INTEGER NOT NULL,
    ended_at_us      INTEGER,
    per_second       INTEGER NOT NULL,
    burst            INTEGER NOT NULL,
    max_edit_bytes   INTEGER NOT NULL,
    confirms_changes INTEGER NOT NULL
) STRICT;

CREATE INDEX access_grant_live ON access_grant (expires_at_us) WHERE ended_at_us IS NULL;
CREATE INDEX access_grant_ended ON access_grant (ended_at_us) WHERE ended_at_us NOT NULL;
CREATE INDEX access_grant_created ON access_grant (created_at_us);
CREATE INDEX access_grant_agent ON access_grant (agent, created_at_us);
CREATE INDEX access_grant_request ON access_grant (request_id) WHERE request_id NOT NULL;
CREATE INDEX access_grant_parent ON access_grant (parent) WHERE parent NOT NULL;

-- SHA-256 of the tokens of a grant: one for the person who approved, one for the agent that claimed.
CREATE TABLE grant_token (
    hash     BLOB NOT NULL PRIMARY KEY,
    grant_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX grant_token_grant ON grant_token (grant_id);

-- What a person is asked before it is done, and what they said.
CREATE TABLE confirmation (
    id            BLOB    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    grant_id      BLOB,
    agent         TEXT    NOT NULL,
    -- Of all that the answer is about.
    digest        BLOB    NOT NULL,
    -- JSON that only the daemon reads: what the person sees.
    shown         TEXT    NOT NULL,
    -- waiting, allowed, denied, expired, withdrawn.
    state         TEXT    NOT NULL,
    created_at_us INTEGER NOT NULL,
    expires_at_us INTEGER NOT NULL,
    decided_at_us INTEGER,
    decided_by    TEXT,
    reason        TEXT,
    -- How often an Allow still counts, and until when.
    uses_left     INTEGER NOT NULL,
    until_us      INTEGER
) STRICT;

CREATE INDEX confirmation_waiting ON confirmation (expires_at_us) WHERE state = 'waiting';
CREATE INDEX confirmation_approval ON confirmation (digest) WHERE state = 'allowed' AND uses_left > 0;
CREATE INDEX confirmation_created ON confirmation (created_at_us);
CREATE INDEX confirmation_grant ON confirmation (grant_id) WHERE grant_id NOT NULL;

-- The definitions of tools as they were when they were first used, or last agreed to.
CREATE TABLE pin (
    destination  TEXT    NOT NULL,
    tool         TEXT    NOT NULL,
    digest       BLOB    NOT NULL,
    definition   TEXT    NOT NULL,
    pinned_at_us INTEGER NOT NULL,
    PRIMARY KEY (destination, tool)
) STRICT, WITHOUT ROWID;
