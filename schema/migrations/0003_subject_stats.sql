-- What is known of a subject without reading its events: live counters, and how fresh its data are.
-- One row per (subject, experiment, event, goal) once merged; read it with sum() and max(), never with FINAL.
CREATE TABLE IF NOT EXISTS subject_stats
(
    website_id    Int64,
    subject       Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    subject_id    Int64,
    experiment_id Int64,
    event         Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    goal_id       Int64,
    rows          SimpleAggregateFunction(sum, UInt64),
    value         SimpleAggregateFunction(sum, Int128) COMMENT 'in 1/10000',
    extra_value   SimpleAggregateFunction(sum, Int128) COMMENT 'in 1/10000',
    last_ingested SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    newest_event  SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (website_id, subject, subject_id, experiment_id, event, goal_id)
