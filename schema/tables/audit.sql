-- Every change of the catalogue, kept permanently: the engine itself drops outdated rows of the catalogue. One row is
-- the new content of one key. If two servers race, both of their rows appear.
CREATE TABLE IF NOT EXISTS audit{{.On}}
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
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (account_id, changed_at, kind, id, facet, version)
