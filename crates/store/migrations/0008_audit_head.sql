-- How far the audit log had come when somebody last looked: its newest line. The log is files of its own, which can be cut
-- short or thrown away; this shows that they were. One row, which only ever moves on.
CREATE TABLE audit_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
