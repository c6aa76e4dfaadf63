-- What people wrote down about a website, a campaign or an experiment: notes, and annotations, which have a time. Rows are
-- only added. A note that was withdrawn has a second row, and both stay. Two servers may copy the same row; the first one
-- counts.
CREATE TABLE IF NOT EXISTS notes{{.On}}
(
    account_id    Int64,
    website_id    Int64,
    subject       LowCardinality(String)           COMMENT 'campaign or widget; none: the website',
    subject_id    Int64,
    experiment_id Int64,
    note_id       String                           COMMENT 'random',
    at            DateTime64(3, 'UTC')             COMMENT 'when it was written, or withdrawn',
    by            String                           COMMENT 'token or command, that wrote or withdrew it',
    kind          Enum8('note' = 1, 'annotation' = 2),
    starts_at     Nullable(DateTime64(3, 'UTC'))   COMMENT 'of an annotation',
    ends_at       Nullable(DateTime64(3, 'UTC'))   COMMENT 'of an annotation; NULL: it is about an instant',
    text          String                           COMMENT 'empty in the row that withdraws',
    link          String                           COMMENT 'empty: none',
    withdrawn     Bool                             COMMENT 'the row withdraws the note'
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (account_id, website_id, subject, subject_id, experiment_id, note_id, withdrawn, at)
