-- Which body came under which Idempotency-Key: another body under the same key is refused. The first to be accepted
-- stands; a key is forgotten after a month, long after anyone repeats a request.
CREATE TABLE IF NOT EXISTS deliveries
(
    website_id  Int64,
    key         String                  COMMENT 'Idempotency-Key as sent',
    digest      FixedString(32)         COMMENT 'SHA-256 of the body as sent',
    accepted_at DateTime64(3, 'UTC')    COMMENT 'server clock'
)
ENGINE = MergeTree
ORDER BY (website_id, key, accepted_at)
TTL toDateTime(accepted_at) + INTERVAL 30 DAY
