-- Numbers of rows and lines that were not stored, one or more rows per minute, website, way, verdict and cause, which add
-- up. The stored ones are counted from events.
CREATE TABLE IF NOT EXISTS unstored
(
    minute     DateTime('UTC')         COMMENT 'server clock',
    website_id Int64                   COMMENT '0: unknown',
    way        LowCardinality(String)  COMMENT 'import, http or inbox',
    verdict    LowCardinality(String)  COMMENT 'rejected, duplicate or conflict',
    cause      LowCardinality(String)  COMMENT 'of a rejected line: the first invalid field, or a few words',
    lines      UInt64
)
ENGINE = MergeTree
ORDER BY (website_id, minute, way, verdict, cause)
TTL minute + INTERVAL 8 DAY
