-- The orders of customers, and that customers had bought before: a row for each revision of a goal that names a customer.
-- Goals without a visitor are here only. Others are in events, too, and are written here first: so each goal with a
-- customer in events has a row here. The fold (engine/fold) decides for which visitor an order without a visitor counts.
--
-- The id of a customer is a hash with the secret of the account: without it, nobody can find a customer by an id or an
-- e-mail. What was sent is not stored.
--
-- All servers of a cluster have all rows, because the orders of a customer may belong to visitors of several shards. Of
-- several copies, the first one to arrive counts, as in events.
CREATE TABLE IF NOT EXISTS customers{{.On}}
(
    website_id   Int64,
    customer_id  UInt64,
    goal_id      Int64                  COMMENT '0: the customer had bought at this time',
    event_id     UInt64                 COMMENT 'as in events; 0 if goal_id is',
    visitor_id   UInt64                 COMMENT '0: the order names no visitor',
    revision     UInt64                 COMMENT 'of a goal as in events; otherwise the time in Unix milliseconds' CODEC(T64, ZSTD(1)),
    time         DateTime64(3, 'UTC')   CODEC(Delta, ZSTD(1)),
    cancelled    Bool,
    value        Int64                  COMMENT 'in 1/10000, as all amounts',
    profit       Int64,
    extra_value  Int64,
    details      String                 COMMENT 'as in events' CODEC(ZSTD(1)),
    ingested_at  DateTime64(3, 'UTC')   COMMENT 'acceptance time, by the clock of the server' CODEC(Delta, ZSTD(1)),
    version      UInt64                 MATERIALIZED 18446744073709551615
        - bitShiftLeft(toUInt64(toUnixTimestamp64Milli(ingested_at)), 16)
        - bitAnd(cityHash64(time, cancelled, value, profit, extra_value, details), 65535)
        CODEC(Delta, ZSTD(1)),
    INDEX ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = {{.Replicated}}ReplacingMergeTree({{with .All}}{{.}}, {{end}}version)
ORDER BY (website_id, customer_id, goal_id, event_id, visitor_id, revision)
SETTINGS index_granularity = 512
