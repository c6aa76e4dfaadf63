-- One row per counted goal event of a visitor: a goal event since the visitor's first view. Its upkeep is that of
-- exposures; see there for bucket, generation, refresh and segment.
--
-- A row has the sums of the visitor's earlier events of the same goal, so that sums of squares over visitors need no
-- grouping by visitor: an event with amount v after a sum b adds (b + v)² - b². This holds for any number of first
-- events, and so for a window that ends early.
CREATE TABLE IF NOT EXISTS conversions
(
    bucket            UInt16,
    generation        UInt64,
    refresh           UInt64,
    segment           UInt8,
    goal_id           Int64,
    device            LowCardinality(String),
    country           LowCardinality(String),
    channel           LowCardinality(String),
    browser           LowCardinality(String),
    os                LowCardinality(String),
    visitor_type      LowCardinality(String),
    referrer          LowCardinality(String) CODEC(ZSTD(1)),
    utm_source        LowCardinality(String) CODEC(ZSTD(1)),
    utm_medium        LowCardinality(String) CODEC(ZSTD(1)),
    utm_campaign      LowCardinality(String) CODEC(ZSTD(1)),
    region            LowCardinality(String) CODEC(ZSTD(1)),
    city              LowCardinality(String) CODEC(ZSTD(1)),
    utm_content       LowCardinality(String) CODEC(ZSTD(1)),
    utm_term          LowCardinality(String) CODEC(ZSTD(1)),
    first_visit_page  LowCardinality(String) CODEC(ZSTD(1)),
    first_time        DateTime64(3, 'UTC')    COMMENT 'time of the first view' CODEC(T64, LZ4),
    visitor_id        UInt64,
    since_ms          UInt64                  COMMENT 'time of the event, in milliseconds after the first view' CODEC(T64, LZ4),
    number            UInt32                  COMMENT '1 for the first event of the goal by the visitor, 2 for the second, ...' CODEC(T64, LZ4),
    value             Int64                   COMMENT 'in 1/10000, like all amounts',
    profit            Int64,
    extra_value       Int64,
    value_before      Int64                   COMMENT 'sum over the earlier events of the goal by the visitor',
    profit_before     Int64,
    extra_value_before Int64
)
ENGINE = MergeTree
PARTITION BY bucket
ORDER BY (generation, goal_id, device, country, os, region, city, browser, channel, first_time)
