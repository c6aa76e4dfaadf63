-- Which process of a store delivers messages. The row with the latest at of each holder counts, until its until. A process
-- delivers while its row is the only one that counts.
CREATE TABLE IF NOT EXISTS leases{{.On}}
(
    holder String,
    at     DateTime64(3, 'UTC'),
    until  DateTime64(3, 'UTC')
)
ENGINE = {{.Replicated}}ReplacingMergeTree({{with .All}}{{.}}, {{end}}at)
ORDER BY holder
