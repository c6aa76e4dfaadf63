-- Signed sums over visitors, which the rollup refresh keeps up to date. Reports add them up and read no events. The
-- table replaces the table settled.
--
-- A cube is a set of dimensions: some attributes of the first view, and optionally the day of the first view and the
-- day of the event. Columns that are not dimensions of the cube are empty. A visitor adds the same amount to a sum in
-- every cube. A change of a visitor is two sets of rows: the old amounts with a negative sign, and the new amounts.
-- Rows with equal keys are added up.
--
-- In a cube with the day of the event, the sum over all days up to a day is the sum over visitors at the end of that
-- day: squares are differences of squares, and a visitor is counted on the day of the first event of the kind. The
-- event 'active' exists in cubes by both days. It counts a visitor on each active day after the first; first_day is
-- then the previous active day. goal_id 0 of the event 'goal' means all goals. In a ranked cube, goal_id is the hash of
-- the attribute, which serves as a number to group by.
--
-- The cube 'state' has the state of a generation. 'layout' is the layout version: the insert that completes the
-- generation sets it, so a generation without it must not be read. 'shares_since' is the start of the shares that it
-- was built for; 'events' is the number of events in it; 'through' and 'newest' are the last acceptance time and the
-- latest event time. Times are in milliseconds. It is one column, because five would make a report slower. 'inserts' is
-- the number of inserts. Each insert adds one to the column visitors of the cube 'state': if the numbers differ, the
-- query sees a part of the rows only, because the generation is being deleted.
--
-- Several amounts are packed into one column, because the cost of a query depends on the number of columns. A refresh
-- inserts one block, atomically. Queries must use sum(), and must read the state in the same statement. A query reads
-- few granules of nearly all columns; hence the small granules and compressed blocks, and one file for all columns of a
-- part. States are first in the key, so that the states of many generations are in few granules. The columns of the
-- subject are not in the key, because a generation belongs to one subject.
CREATE TABLE IF NOT EXISTS rollups
(
    bucket               UInt16                  COMMENT 'large generations have a bucket of their own; the others share some',
    generation           UInt64                  COMMENT 'rows of different generations must not be added up',
    website_id           SimpleAggregateFunction(any, Int64),
    subject              SimpleAggregateFunction(any, Enum8('none' = 0, 'campaign' = 1, 'widget' = 2)),
    subject_id           SimpleAggregateFunction(any, Int64),
    experiment_id        SimpleAggregateFunction(any, Int64),
    is_cell              UInt8                   COMMENT '0: state',
    cube_name            LowCardinality(String)  COMMENT 'which of the following columns are dimensions',
    event                Enum8('active' = 0, 'view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    goal_id              Int64,
    device               LowCardinality(String),
    country              LowCardinality(String),
    channel              LowCardinality(String),
    browser              LowCardinality(String),
    os                   LowCardinality(String),
    visitor_type         LowCardinality(String),
    referrer             String,
    utm_source           String,
    utm_medium           String,
    utm_campaign         String,
    city                 String,
    variation_id         Int64                   COMMENT 'variation of the first view',
    multi_exposed        UInt8                   COMMENT '1: the visitor saw more than one variation',
    first_day            Date32,
    day                  Date32,
    visitors             SimpleAggregateFunction(sum, Int64),
    since_shares         SimpleAggregateFunction(sum, Int64)   COMMENT 'visitors first exposed since the current shares took effect',
    events               SimpleAggregateFunction(sum, Int64),
    events_squares       SimpleAggregateFunction(sum, Int128),
    value                SimpleAggregateFunction(sum, Int256)  COMMENT 'sum · 2^128 + sum of squares, in 1/10000, like all amounts',
    value_times_goals    SimpleAggregateFunction(sum, Int128),
    profit               SimpleAggregateFunction(sum, Int256)  COMMENT 'packed like value',
    extra_value          SimpleAggregateFunction(sum, Int256)  COMMENT 'packed like value',
    signs                SimpleAggregateFunction(sum, Int256)  COMMENT 'visitors with value != 0, + 2^40 · value < 0, + 2^80 · (the same for profit), + 2^160 · (for extra value)',
    state                SimpleAggregateFunction(maxMap, Map(String, Int64))  COMMENT 'state of the generation; empty in other cubes'
)
ENGINE = AggregatingMergeTree
PARTITION BY bucket
PRIMARY KEY (is_cell, generation, cube_name, event, goal_id, device, country, channel, browser, os, visitor_type, referrer)
ORDER BY (is_cell, generation, cube_name, event, goal_id, device, country, channel, browser, os, visitor_type, referrer,
    utm_source, utm_medium, utm_campaign, city, variation_id, multi_exposed, first_day, day)
SETTINGS index_granularity = 256, min_compress_block_size = 2048, max_compress_block_size = 8192,
    min_bytes_for_wide_part = 1000000000000, min_rows_for_wide_part = 1000000000000
