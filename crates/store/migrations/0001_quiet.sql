-- Destinations whose server, in this version, is known never to ask its client anything, so that all sessions
-- may share one child from its start. A new version of the server has to earn this again.
CREATE TABLE quiet (
    destination   TEXT    NOT NULL,
    server        TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    learned_at_us INTEGER NOT NULL,
    PRIMARY KEY (destination, server, version)
) STRICT;
