-- Every change of the catalogue, for good: the engine drops outdated rows of the catalogue itself. One row is what one
-- key was changed to; a race of two servers shows as both of their rows.
CREATE TABLE IF NOT EXISTS audit
(
    account_id Int64,
    changed_at DateTime64(3, 'UTC'),
    changed_by String                  COMMENT 'token or command',
    kind       LowCardinality(String),
    id         Int64,
    facet      Enum8('definition' = 1, 'state' = 2),
    version    UInt64,
    archived   Bool                    COMMENT 'of a token: revoked',
    body       String                  COMMENT 'JSON, after the change'
)
ENGINE = MergeTree
ORDER BY (account_id, changed_at, kind, id, facet, version)
