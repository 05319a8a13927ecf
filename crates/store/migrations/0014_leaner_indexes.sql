-- Every index is a page more in every commit. A thread's steps are found by the thread; threads that go with their run
-- are never searched for.
DROP INDEX steps_by_run;
DROP INDEX threads_by_update;
DROP INDEX threads_by_creation;
CREATE INDEX threads_by_update ON threads (updated_at) WHERE temporary = 0;
CREATE INDEX threads_by_creation ON threads (created_at) WHERE temporary = 0;
