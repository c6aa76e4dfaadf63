-- The table from which reports are computed: the rows that the fold (engine/fold) returns for each visitor, sums of
-- these rows, and the position up to which events are folded. Everything can be computed again from the events.
--
-- Rows are never changed. A row that is no longer true gets a twin with the sign -1. Merges remove both rows. Sums are
-- taken of the sign times a column, so they are the same before and after merges.
--
-- A refresh inserts all its rows as one block, which is atomic. The deduplication token is the number of the refresh:
-- of two refreshes with the same number, ClickHouse keeps the first. The row of the grain 'position' has the number of
-- the last refresh and the acceptance time up to which events are folded. Exactly one such row is live in a generation. A
-- replica that sees none or several does not have all parts yet.
--
-- All rows of one fold of the events are a generation, in a partition of its own. A rebuild folds the events into the
-- other partition. Its last insert makes it the generation from which reports are computed, and then the partition of
-- the old one is dropped.
--
-- The grains 'all' and 'day' have sums over the visitors of a variation, in the column sums. Their visitor_id is the
-- hash of the variation. In 'all', goal 0 has the sums of visitors and of the events of all goals. In 'day', first_time
-- is the day of the first view, and since_ms is the day of the events. Only subjects with many visitors have 'day'. Its
-- goal -1 counts the visitors who had events on the day first_time, and next on the day since_ms.
--
-- A section is all rows of one grain of one subject. A report filters by the number of the section instead of five
-- columns, which halves the cost of most statements.
--
-- ORDER BY: the attributes by which reports are filtered most often come first, so a report with filters reads few
-- granules. Each has few values. The variation follows, because reports group by it. An attribute that depends on
-- another follows it, so columns compress well. Twins have equal keys, and different rows have different keys.
CREATE TABLE IF NOT EXISTS facts{{.Local}}{{.On}}
(
    section            UInt64                  COMMENT 'grain · 2^60 + generation modulo 2 · 2^59 + hash of website, subject and experiment',
    website_id         Int64,
    subject            Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    subject_id         Int64,
    experiment_id      Int64,
    grain              Enum8('visitor' = 1, 'goal' = 2, 'all' = 3, 'day' = 4, 'position' = 5),
    goal_id            Int64                   COMMENT '0: visitors; -1: returns, see fold.Returns',
    sign               Int8                    COMMENT '-1: cancels an equal row',
    variation          LowCardinality(String)  COMMENT 'id of the variation of the first view, + if the visitor saw others; ! at its end, or empty: events that do not count, and ! if the visitor is automated; of a position: the currencies of the websites, see facts.Position, as for its other columns',
    visitor_id         UInt64,
    device             LowCardinality(String)  COMMENT 'of the first view, like all attributes',
    country            LowCardinality(String),
    channel            LowCardinality(String),
    browser            LowCardinality(String),
    os                 LowCardinality(String),
    visitor_type       LowCardinality(String),
    referrer           LowCardinality(String)  CODEC(ZSTD(1)),
    utm_source         LowCardinality(String)  CODEC(ZSTD(1)),
    utm_medium         LowCardinality(String)  CODEC(ZSTD(1)),
    utm_campaign       LowCardinality(String)  CODEC(ZSTD(1)),
    city               LowCardinality(String)  CODEC(ZSTD(1)),
    region             LowCardinality(String)  CODEC(ZSTD(1)),
    utm_content        LowCardinality(String)  CODEC(ZSTD(1)),
    utm_term           LowCardinality(String)  CODEC(ZSTD(1)),
    first_visit_page   LowCardinality(String)  CODEC(ZSTD(1)),
    first_time         DateTime64(3, 'UTC')    COMMENT 'time of the first view' CODEC(T64, LZ4),
    first_day          Date                    MATERIALIZED toDate(least(first_time, toDateTime64('2149-06-06 00:00:00', 3, 'UTC'))) COMMENT 'cheaper to read than the time; its last value is 2149-06-06' CODEC(T64, LZ4),
    since_ms           UInt64                  COMMENT 'time of the goal event, or of the last event of the visitor, in milliseconds after first_time' CODEC(T64, LZ4),
    number             UInt32                  COMMENT 'of a goal event among those of the visitor and goal, from 1; of an automated visitor: the limit of events; of a position: number of the refresh; its visitor_id is random' CODEC(T64, LZ4),
    multi_exposed_at   DateTime64(3, 'UTC')    COMMENT 'time of the visitor''s first view of another variation; 1970: none' CODEC(ZSTD(1)),
    seen               UInt32                  COMMENT 'of a visitor: number of events of the subject that the row is made of' CODEC(T64, LZ4),
    digest             UInt64                  COMMENT 'XOR of their hashes',
    views              UInt32                  CODEC(T64, LZ4),
    clicks             UInt32,
    submits            UInt32,
    completions        UInt32,
    conversions        UInt32,
    contacts           UInt32,
    later_ms           Array(UInt64)           COMMENT 'times of the other events, in milliseconds after the first view, ascending' CODEC(ZSTD(1)),
    later_kinds        Array(UInt8)            COMMENT 'their kinds, as in the column event of events' CODEC(ZSTD(1)),
    value              Int64                   COMMENT 'of a goal event, in 1/10000 of the currency of the website, like all amounts; of a position: number of rates',
    profit             Int64                   COMMENT 'of a position: when the last of the rates was declared',
    extra_value        Int64,
    value_before       Int64                   COMMENT 'sum over the earlier events of the visitor and goal',
    profit_before      Int64,
    extra_value_before Int64,
    marks              UInt8                   COMMENT 'of a goal event, bits: 1: there is no rate for its amounts, which are 0 here; 4: it is an order of the visitor''s customer that names no visitor' CODEC(T64, LZ4),
    foreign_currency   LowCardinality(String)  COMMENT 'in which the amounts of a goal event were sent; empty: that of the website',
    custom             LowCardinality(String)  COMMENT 'own attributes of the first view: name=value\0 of each, by name' CODEC(ZSTD(1)),
    properties         LowCardinality(String)  COMMENT 'of a goal event: name=text\0 or name#number\0 of each, by name; numbers in 1/10000' CODEC(ZSTD(1)),
    item_product       Array(LowCardinality(String)) COMMENT 'of the lines of a goal event, as the next columns' CODEC(ZSTD(1)),
    item_variant       Array(LowCardinality(String)) CODEC(ZSTD(1)),
    item_category      Array(LowCardinality(String)) CODEC(ZSTD(1)),
    item_brand         Array(LowCardinality(String)) CODEC(ZSTD(1)),
    item_name          Array(LowCardinality(String)) CODEC(ZSTD(1)),
    item_quantity      Array(Int64)            COMMENT 'in 1/10000' CODEC(ZSTD(1)),
    item_revenue       Array(Int64)            CODEC(ZSTD(1)),
    item_profit        Array(Int64)            CODEC(ZSTD(1)),
    sums               Array(Int128)           COMMENT 'of a cell: fold.CellSums; then fold.Extent'
)
ENGINE = {{.Replicated}}CollapsingMergeTree({{with .Shard}}{{.}}, {{end}}sign)
PARTITION BY bitAnd(bitShiftRight(section, 59), 1)
PRIMARY KEY (section, goal_id, device, country, variation, os, region, city)
ORDER BY (section, goal_id, device, country, variation, os, region, city, browser, channel,
    first_time, visitor_id, since_ms, number)
SETTINGS index_granularity = 2048, non_replicated_deduplication_window = 10000{{if .Cluster}}, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS facts{{.On}} AS facts_local
ENGINE = Distributed({{.Cluster}}, currentDatabase(), 'facts_local', visitor_id){{end}}
