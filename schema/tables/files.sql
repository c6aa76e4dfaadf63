-- The files that were imported from a directory, which are skipped when the directory is imported again.
CREATE TABLE IF NOT EXISTS files{{.On}}
(
    digest      UInt64               COMMENT 'xxHash64 of the content and the mapping',
    path        String,
    rows        UInt64               COMMENT 'that were accepted',
    imported_at DateTime64(3, 'UTC')
)
ENGINE = {{.Replicated}}ReplacingMergeTree{{with .All}}({{.}}){{end}}
ORDER BY (digest, path)
