-- The table of the migrations that ran.
CREATE TABLE IF NOT EXISTS migrations{{.On}}
(
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {{.Replicated}}ReplacingMergeTree{{with .All}}({{.}}){{end}}
ORDER BY name
