-- One row per look of a declared question at a variation, with the figures at the time of the look: exact sums, and what
-- follows from them. Of the primary question, also a row per harm, per end of the subject, and of the first sample ratio
-- mismatch. Of any question, also a row if orders change at different ages in the variations, and of a follow-up a row
-- per declared window and variation. A row is written once and never changed. Two servers may write the same row; the
-- first one counts.
CREATE TABLE IF NOT EXISTS looks{{.On}}
(
    website_id        Int64,
    subject           LowCardinality(String)  COMMENT 'campaign or widget',
    subject_id        Int64,
    experiment_id     Int64,
    question          UInt64                  COMMENT 'hash of the declared rules: methodology, level, clock, variations',
    goal_id           Int64                   COMMENT '0: all goals count',
    metric            LowCardinality(String),
    conversion_window LowCardinality(String)  COMMENT 'such as 7d; none: no limit',
    kind              Enum8('look' = 1, 'harm' = 2, 'end' = 3, 'returns' = 4, 'split' = 5, 'followUp' = 6),
    variation_id      Int64,
    look              UInt32                  COMMENT 'number of the look, from 1; of an end: of full days; of a follow-up: days of the window; else 0',
    ended_at          DateTime64(3, 'UTC')    COMMENT 'end of the look, or of the last full day',
    body              String                  COMMENT 'JSON: sums, critical value, z, p, intervals',
    recorded_at       DateTime64(3, 'UTC')
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (website_id, subject, subject_id, experiment_id, question, goal_id, metric, conversion_window, kind, variation_id, look, recorded_at)
