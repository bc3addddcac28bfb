-- What each destination last listed at the hub, so that its tools are there while it starts. No items: the hub has waited
-- for it once, and it did not come.
CREATE TABLE listed (
    destination   TEXT    NOT NULL,
    list          TEXT    NOT NULL,
    items         TEXT,
    learned_at_us INTEGER NOT NULL,
    PRIMARY KEY (destination, list)
) STRICT;
