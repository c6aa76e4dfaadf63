-- The last events that came, without a look at all others: the key has no place for the time of acceptance.
ALTER TABLE events ADD INDEX IF NOT EXISTS ingested_at ingested_at TYPE minmax GRANULARITY 1
