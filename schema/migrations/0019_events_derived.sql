-- Tells rows that were made of a goal without exposures from those that the sender stamped: the former have to agree with
-- the goal. Rows of earlier releases have 0.
ALTER TABLE events ADD COLUMN IF NOT EXISTS derived Bool DEFAULT false COMMENT 'made of a goal without exposures, for a subject that its visitor saw'
