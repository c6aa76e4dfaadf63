-- Files that never change: the readouts of campaigns, and pictures. A document is one insert, whose deduplication token is its id: of
-- several servers that store the same document, ClickHouse keeps the row of one. A document that was withdrawn has a second
-- row without summary and body, and the first row is deleted.
CREATE TABLE IF NOT EXISTS documents{{.On}}
(
    account_id    Int64,
    website_id    Int64,
    subject       LowCardinality(String)           COMMENT 'campaign or widget; empty: a picture',
    subject_id    Int64,
    experiment_id Int64,
    document_id   String                           COMMENT 'hash of what the body is made from, 32 hexadecimal digits',
    kind          Enum8('readout' = 1, 'picture' = 2),
    look          UInt32                           COMMENT 'number of the look; 0: it is about all full days',
    ended_at      DateTime64(3, 'UTC')             COMMENT 'end of the look, or of the last full day; of a picture as made_at',
    made_at       DateTime64(3, 'UTC'),
    made_by       String                           COMMENT 'token or command; empty: the server',
    media_type    LowCardinality(String),
    summary       String                           COMMENT 'JSON: the answer, and the figures that later data may change',
    digest        String                           COMMENT 'SHA-256 of the body, hexadecimal',
    size          UInt64                           COMMENT 'of the body, in bytes',
    body          String                           CODEC(ZSTD(3)),
    withdrawn_at  Nullable(DateTime64(3, 'UTC'))   COMMENT 'of the row that withdraws the document',
    withdrawn_by  String
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (account_id, website_id, subject, subject_id, experiment_id, document_id, made_at)
SETTINGS index_granularity = 16, non_replicated_deduplication_window = 1000
