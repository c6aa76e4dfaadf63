-- Copies of events that were removed, of a store that several processes write to: each was stored although another
-- process stored the same event. One row before a copy is removed, and one with done = true after. A copy is
-- identified by its event, writer and time of acceptance, so that it may be recorded several times and counts once:
-- whichever process removes a copy, and however often, subject_counters subtracts it once.
CREATE TABLE IF NOT EXISTS removed_copies
(
    website_id    Int64,
    subject       Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    subject_id    Int64,
    experiment_id Int64,
    visitor_id    UInt64,
    event_id      UInt64,
    writer        LowCardinality(String),
    ingested_at   DateTime64(3, 'UTC')   COMMENT 'of the copy',
    done          Bool                   COMMENT 'the copy is gone',
    event         Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    goal_id       Int64,
    value         Int64                  COMMENT 'in 1/10000',
    extra_value   Int64                  COMMENT 'in 1/10000'
)
ENGINE = ReplacingMergeTree
ORDER BY (website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at, done)
