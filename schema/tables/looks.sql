-- One row per look of a declared question at a variation, with the figures at the time of the look. A row is written
-- once and never changed. Two servers may write the same look; the first row counts.
CREATE TABLE IF NOT EXISTS looks{{.On}}
(
    website_id    Int64,
    subject       LowCardinality(String)  COMMENT 'campaign or widget',
    subject_id    Int64,
    experiment_id Int64,
    question      UInt64                  COMMENT 'hash of the declared rules: methodology, level, clock, variations',
    goal_id       Int64                   COMMENT '0: all goals count',
    metric        LowCardinality(String),
    variation_id  Int64,
    look          UInt32                  COMMENT 'number of the look, from 1',
    ended_at      DateTime64(3, 'UTC')    COMMENT 'end of the look',
    body          String                  COMMENT 'JSON: counts, critical value, z, p, intervals',
    recorded_at   DateTime64(3, 'UTC')
)
ENGINE = {{.Replicated}}MergeTree{{with .All}}({{.}}){{end}}
ORDER BY (website_id, subject, subject_id, experiment_id, question, goal_id, metric, variation_id, look, recorded_at)
