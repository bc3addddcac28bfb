-- How each destination is to be spoken to, as far as that was found out: the last verdict. How long a verdict counts
-- is for its reader to know.
CREATE TABLE era (
    destination   TEXT    NOT NULL PRIMARY KEY,
    era           TEXT    NOT NULL,
    learned_at_us INTEGER NOT NULL
) STRICT;
