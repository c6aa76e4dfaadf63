-- The process that wrote a row, of a store that several write to. It is in the key so that no merge drops a copy of an
-- event before its writer saw that another one's came first: that writer takes its copy back, and out of subject_stats,
-- of which a merge knows nothing.
ALTER TABLE events
    ADD COLUMN IF NOT EXISTS writer LowCardinality(String) COMMENT 'process that wrote the row; empty where the store has one process',
    MODIFY ORDER BY (website_id, subject, subject_id, experiment_id, visitor_id, time, event_id, writer)
