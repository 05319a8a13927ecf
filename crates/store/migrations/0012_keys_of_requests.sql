-- An idempotency key is one of its thread's, or of the runs that have none, and stands for one request.
ALTER TABLE runs ADD COLUMN fingerprint TEXT;
UPDATE runs SET idempotency_key =
    (SELECT CASE WHEN temporary THEN '' ELSE id END FROM threads WHERE threads.n = runs.thread) || '/' || idempotency_key
WHERE idempotency_key IS NOT NULL;
