-- one row: the number of recorded rows, and when the last one was recorded
SELECT count(), max(recorded_at)
FROM looks
