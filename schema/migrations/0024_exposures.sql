-- One row per visitor of a subject with rollups: the first view, and what followed it. Reports that the cubes cannot
-- express count these rows. The rollup refresh keeps them up to date; they are computed from the events.
--
-- Rows are never changed. A visitor who changes gets a row that cancels the old one (segment is odd), and a new one: a
-- sum is the sum over even segments minus the sum over odd ones. A merge must not remove such pairs, because a report
-- may include only one of them.
--
-- A refresh has an epoch and a number in it. It inserts one block here, one into conversions if it changes any, and one
-- with the new state into rollups. The state lists how many refreshes of each epoch are complete, and how many of those
-- changed no conversions; only their rows may be read. Each block has one row with the segment 255, the marker, which has
-- no attributes. A report counts the markers that it sees: if any is missing, its snapshot lacks rows.
--
-- Times of later events have the precision of hours, because exact times would double the size of the table. Series
-- and windows of whole hours need no more.
--
-- ORDER BY: attributes with few values come first, so that a report with filters reads few granules. An attribute that
-- depends on another one follows it, so that the columns compress well. No column identifies the visitor: no report needs
-- it, and rows are deleted by subject.
CREATE TABLE IF NOT EXISTS exposures
(
    bucket            UInt16                  COMMENT 'large generations have a bucket of their own; the others share some',
    generation        UInt64                  COMMENT 'rows of different generations must not be added up',
    refresh           UInt64                  COMMENT 'epoch · 2^20 + number',
    segment           UInt8                   COMMENT '4 · index of the variation of the first view + 2 if multi-exposed + 1 if the row cancels another one; 255: marker',
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
    first_day         Date32                  MATERIALIZED toDate32(first_time) COMMENT 'cheaper to read than the time',
    multi_exposed_at  DateTime64(3, 'UTC')    COMMENT 'time of the first view of another variation; 1970: none' CODEC(ZSTD(1)),
    views             UInt32                  CODEC(T64, LZ4),
    clicks            UInt32,
    submits           UInt32,
    completions       UInt32,
    conversions       UInt32,
    contacts          UInt32,
    later_hours       Array(UInt32)           COMMENT 'hours of the other events since the first view, ascending, after the hour of the first view' CODEC(ZSTD(1)),
    later_kinds       Array(UInt8)            COMMENT 'their kinds, as in the column event of events' CODEC(ZSTD(1)),
    last_ms           UInt64                  COMMENT 'time of the last event, in milliseconds after the first view' CODEC(T64, LZ4)
)
ENGINE = MergeTree
PARTITION BY bucket
ORDER BY (generation, device, country, os, region, city, browser, channel, first_time)
