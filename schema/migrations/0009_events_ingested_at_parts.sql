-- The index of the parts that were there before it. Reads one column of them, in the background.
ALTER TABLE events MATERIALIZE INDEX ingested_at SETTINGS mutations_sync = 0
