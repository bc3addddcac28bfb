-- Why what was owed is owed no more, where somebody said so: the state is then waived.
ALTER TABLE obligation ADD COLUMN closed_why TEXT;

-- What agents have said of how far they are: the newest notes of each.
CREATE TABLE agent_note (
    agent TEXT    NOT NULL,
    at_us INTEGER NOT NULL,
    note  TEXT    NOT NULL
) STRICT;

CREATE INDEX agent_note_agent ON agent_note (agent, at_us);
