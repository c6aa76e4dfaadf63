-- One row per conclusion that was named: a winner or a loser of the declared goal and metric, with the figures of the day
-- that decided. A row is written once and never changed. Two servers may write the same conclusion; the first row counts.
--
-- Reports compute conclusions from the events. They compare them with this table, and say if later or removed events
-- changed what was named before.
CREATE TABLE IF NOT EXISTS conclusions
(
    website_id    Int64,
    subject       LowCardinality(String)  COMMENT 'campaign or widget',
    subject_id    Int64,
    experiment_id Int64,
    question      UInt64                  COMMENT 'hash of all that the declared question depends on: goal, metric, rules, variations, shares',
    goal_id       Int64                   COMMENT '0: all goals count',
    metric        LowCardinality(String),
    segment       UInt32                  COMMENT 'number of the period of equal shares, from 1',
    status        LowCardinality(String)  COMMENT 'winner or loser',
    variation_id  Int64,
    basis         LowCardinality(String)  COMMENT 'plannedLook or alwaysValid',
    decided_at    DateTime64(3, 'UTC')    COMMENT 'end of the day that decided',
    visitors      Int64                   COMMENT 'counted until then, over all variations',
    comparison    String                  COMMENT 'JSON: the figures of the variation at that time, as in the results body',
    recorded_at   DateTime64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (website_id, subject, subject_id, experiment_id, recorded_at)
