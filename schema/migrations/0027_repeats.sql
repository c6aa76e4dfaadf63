-- One row per duplicate that arrived lately: a row that was not stored, because one with the same identity was stored
-- before. Only the first ones of each write. `lifthouse events --visitor` shows them.
CREATE TABLE IF NOT EXISTS repeats
(
    arrived_at    DateTime64(3, 'UTC')    COMMENT 'server clock',
    website_id    Int64,
    subject       LowCardinality(String)  COMMENT 'campaign, widget or none',
    subject_id    Int64,
    experiment_id Int64,
    visitor_id    UInt64,
    event_id      UInt64,
    conflict      Bool                    COMMENT 'the content differs from the stored row',
    time          DateTime64(3, 'UTC')    COMMENT 'this and all below: of the row that was not stored',
    event         LowCardinality(String),
    goal_id       Int64,
    variation_id  Int64,
    value         Int64                   COMMENT 'in 1/10000',
    way           LowCardinality(String)  COMMENT 'import, http or inbox',
    file          String                  COMMENT 'name of the imported file',
    line          Int64                   COMMENT 'line number; 0: unknown'
)
ENGINE = MergeTree
ORDER BY (visitor_id, arrived_at)
TTL toDateTime(arrived_at) + INTERVAL 7 DAY
