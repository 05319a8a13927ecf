-- Steps of agents that work inside a call of a thread, as long as something of the thread may come back to them.
CREATE TABLE child_steps (
    n INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    -- Names the call, whichever run makes it.
    call TEXT NOT NULL,
    -- The thread's run that wrote it.
    run TEXT NOT NULL,
    step TEXT NOT NULL
) STRICT;
CREATE INDEX child_steps_by_call ON child_steps (thread, call);
