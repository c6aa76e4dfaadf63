-- Signed sums over visitors, kept up to date by the settlement step, from which a report is summed without a look at
-- the events. A visitor's part in a sum is the same in every facet: taking the old part out and putting the new one in
-- is one row each, and rows of equal keys add up.
--
-- A facet keeps some attributes of the first view, and perhaps the day of the first view and of the event; columns that it
-- does not keep are empty. Where it keeps the event's day, a sum over the days before any day is a sum over visitors as
-- they stood then: squares are differences of squares, and visitors stand on the day of their first event of the kind.
-- In event 'seen', which facets by both days have, a visitor stands once for each day after the first one with any event:
-- first_day is then the last such day before it. goal_id 0 of 'goal' stands for all goals. In a facet that is ranked, goal_id is the hash of the
-- attribute: a number to group by.
--
-- facet 'state' says of a generation: visitors 1 that it is complete; value, the shares_since of the catalogue that it was
-- made for, in milliseconds; goal_id, the layout; events, how many are in it; events_squares and value_times_goals, the
-- last acceptance and the latest time of them, in milliseconds.
--
-- Amounts are packed, several numbers into one: what a statement costs goes by its columns.
--
-- A generation is a partition: it goes as a whole, and is merged by itself.
--
-- One insert of one block is one step, whole or not at all. Read it with sum(), and with the state in the same
-- statement.
CREATE TABLE IF NOT EXISTS settled
(
    website_id           Int64,
    subject              Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    subject_id           Int64,
    experiment_id        Int64,
    generation           UInt64                  COMMENT 'rows of different ones are never added up',
    facet                LowCardinality(String)  COMMENT 'which of the following columns are kept',
    event                Enum8('seen' = 0, 'view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
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
    variation_id         Int64                   COMMENT 'of the first view',
    crossover            UInt8                   COMMENT '1: saw more than one variation',
    first_day            Date32,
    day                  Date32,
    visitors             SimpleAggregateFunction(sum, Int64),
    since_shares         SimpleAggregateFunction(sum, Int64)   COMMENT 'of them, first exposed since the shares hold',
    events               SimpleAggregateFunction(sum, Int64),
    events_squares       SimpleAggregateFunction(sum, Int128),
    value                SimpleAggregateFunction(sum, Int256)  COMMENT 'sum · 2^128 + sum of squares, in 1/10000, as all amounts',
    value_times_goals    SimpleAggregateFunction(sum, Int128),
    profit               SimpleAggregateFunction(sum, Int256)  COMMENT 'as value',
    extra_value          SimpleAggregateFunction(sum, Int256)  COMMENT 'as value',
    signs                SimpleAggregateFunction(sum, Int256)  COMMENT 'visitors whose value is not 0, + 2^40 · below 0, + 2^80 · (the same of profit), + 2^160 · (of extra value)'
)
ENGINE = AggregatingMergeTree
PARTITION BY (website_id, subject, subject_id, experiment_id, generation)
PRIMARY KEY (website_id, subject, subject_id, experiment_id, generation, facet, event, goal_id, device, country, channel, browser, os,
    visitor_type, referrer)
ORDER BY (website_id, subject, subject_id, experiment_id, generation, facet, event, goal_id, device, country, channel, browser, os,
    visitor_type, referrer, utm_source, utm_medium, utm_campaign, variation_id, crossover, first_day, day)
SETTINGS index_granularity = 256
