-- What a run goes on by must add up, too. Rows of before have no sum.
ALTER TABLE effects ADD COLUMN sum INTEGER;
-- The outcome comes later than the rest of its row.
ALTER TABLE effects ADD COLUMN outcome_sum INTEGER;
ALTER TABLE child_steps ADD COLUMN sum INTEGER;
ALTER TABLE threads ADD COLUMN head_sum INTEGER;
ALTER TABLE runs ADD COLUMN request_sum INTEGER;
