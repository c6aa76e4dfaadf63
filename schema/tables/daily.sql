-- What was done last about each subject, or each website, so that no process does it again on the same day: after a start,
-- nothing is judged that was judged today. The row with the highest version counts.
CREATE TABLE IF NOT EXISTS daily{{.On}}
(
    kind          Enum8('checked' = 1, 'judged' = 2, 'tested' = 3, 'measured' = 4) COMMENT 'looks and harm were; the decision was; the split of imported events was; the interactions of a website were',
    website_id    Int64,
    subject       LowCardinality(String) COMMENT 'campaign or widget; none: the website',
    subject_id    Int64,
    experiment_id Int64,
    version       UInt64                 COMMENT 'greater than that of the row before, whatever the clock says; highest counts',
    day           Date                   COMMENT 'on which it was done',
    basis         UInt64                 COMMENT 'hash of what it was based on: the definition, the recorded looks, the interactions, the number of events',
    body          String                 COMMENT 'JSON: the interactions that were measured; else empty'
)
ENGINE = {{.Replicated}}ReplacingMergeTree({{with .All}}{{.}}, {{end}}version)
ORDER BY (kind, website_id, subject, subject_id, experiment_id)
