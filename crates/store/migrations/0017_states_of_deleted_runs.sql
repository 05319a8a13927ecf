-- Whether the run that made the step was deleted: its state is what later ones stand on, and is not listed any more.
ALTER TABLE steps ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
