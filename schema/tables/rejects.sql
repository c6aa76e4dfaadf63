-- Recently rejected lines, each with the reason why the event is not counted. Of many lines, only the first
-- few hundred are stored, which suffices to recognize a sender whose events are all invalid.
--
-- ORDER BY: the last lines are read from the end.
CREATE TABLE IF NOT EXISTS rejects{{.On}}
(
    rejected_at DateTime64(3, 'UTC')  COMMENT 'server clock' CODEC(Delta, ZSTD(1)),
    website_id  Int64                 COMMENT 'of the token, or as the line says; 0: it does not',
    channel     Enum8('import' = 1, 'http' = 2, 'inbox' = 3),
    file        String                COMMENT 'name of the file that was imported',
    line        Int64                 COMMENT 'number of the line or of the place in an array; 0: the whole body',
    reason      String                CODEC(ZSTD(1)),
    text        String                COMMENT 'beginning of the line, without what looks like a secret' CODEC(ZSTD(1))
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (rejected_at, website_id)
TTL toDateTime(rejected_at) + INTERVAL 7 DAY
