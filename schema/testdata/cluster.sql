CREATE TABLE IF NOT EXISTS migrations ON CLUSTER `lift-1`
(
    `name` String,
    `checksum` String,
    `applied_at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY name

CREATE TABLE IF NOT EXISTS catalogue ON CLUSTER `lift-1`
(
    `account_id` Int64 COMMENT 'owner; an account row carries its own id',
    `kind` LowCardinality(String) COMMENT 'account, token, website, goal, target, campaign or widget',
    `id` Int64 COMMENT 'unique within account and kind; websites are unique over all accounts',
    `facet` Enum8('definition' = 1, 'state' = 2),
    `version` UInt64 COMMENT 'highest stands',
    `body` String COMMENT 'JSON',
    `archived` Bool COMMENT 'true hides the resource; its events stay',
    `changed_at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}', version)
ORDER BY (account_id, kind, id, facet)

CREATE TABLE IF NOT EXISTS events_local ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `subject` Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    `subject_id` Int64,
    `experiment_id` Int64 COMMENT 'experiment of a widget; 0: none',
    `visitor_id` UInt64 COMMENT 'xxHash64 of the visitor as sent',
    `time` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `event_id` UInt64 COMMENT 'xxHash64 of the event id as sent; a row is identified by it, the website, the subject and the experiment',
    `variation_id` Int64 COMMENT '0: control',
    `event` Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    `goal_id` Int64 COMMENT '0 where the event is no goal',
    `value` Int64 COMMENT 'in 1/10000',
    `profit` Int64 COMMENT 'in 1/10000',
    `extra_value` Int64 COMMENT 'in 1/10000',
    `device` LowCardinality(String),
    `browser` LowCardinality(String),
    `os` LowCardinality(String),
    `country` LowCardinality(String),
    `region` String CODEC(ZSTD(1)),
    `city` String CODEC(ZSTD(1)),
    `channel` LowCardinality(String),
    `referrer` String CODEC(ZSTD(1)),
    `utm_source` String CODEC(ZSTD(1)),
    `utm_medium` String CODEC(ZSTD(1)),
    `utm_campaign` String CODEC(ZSTD(1)),
    `utm_content` String CODEC(ZSTD(1)),
    `utm_term` String CODEC(ZSTD(1)),
    `first_visit_page` String CODEC(ZSTD(1)),
    `visitor_type` LowCardinality(String) COMMENT 'new, returning or empty',
    `ingested_at` DateTime64(3, 'UTC') COMMENT 'server clock at acceptance' CODEC(Delta, ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/{shard}', '{replica}')
PARTITION BY toYYYYMM(time)
ORDER BY (website_id, subject, subject_id, experiment_id, visitor_id, time, event_id)
SETTINGS index_granularity = 512, enable_block_number_column = 1

CREATE TABLE IF NOT EXISTS events ON CLUSTER `lift-1` AS events_local
ENGINE = Distributed('lift-1', currentDatabase(), 'events_local', visitor_id)

CREATE TABLE IF NOT EXISTS subject_stats_local ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `subject` Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    `subject_id` Int64,
    `experiment_id` Int64,
    `event` Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    `goal_id` Int64,
    `rows` SimpleAggregateFunction(sum, UInt64),
    `value` SimpleAggregateFunction(sum, Int128) COMMENT 'in 1/10000',
    `extra_value` SimpleAggregateFunction(sum, Int128) COMMENT 'in 1/10000',
    `last_ingested` SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    `newest_event` SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/lifthouse/{uuid}/{shard}', '{replica}')
ORDER BY (website_id, subject, subject_id, experiment_id, event, goal_id)
SETTINGS enable_block_number_column = 1

CREATE TABLE IF NOT EXISTS subject_stats ON CLUSTER `lift-1` AS subject_stats_local
ENGINE = Distributed('lift-1', currentDatabase(), 'subject_stats_local', rand())

CREATE MATERIALIZED VIEW IF NOT EXISTS subject_stats_view ON CLUSTER `lift-1` TO subject_stats_local
AS SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    event,
    goal_id,
    count() AS rows,
    sum(toInt128(value)) AS value,
    sum(toInt128(extra_value)) AS extra_value,
    max(ingested_at) AS last_ingested,
    max(time) AS newest_event
FROM events_local
GROUP BY
    website_id,
    subject,
    subject_id,
    experiment_id,
    event,
    goal_id

CREATE TABLE IF NOT EXISTS deliveries ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `key` String COMMENT 'Idempotency-Key as sent',
    `digest` FixedString(32) COMMENT 'SHA-256 of the body as sent',
    `accepted_at` DateTime64(3, 'UTC') COMMENT 'server clock'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (website_id, key, accepted_at)
TTL toDateTime(accepted_at) + toIntervalDay(30)

ALTER TABLE catalogue
    (ADD COLUMN IF NOT EXISTS `writer` String COMMENT 'process that wrote the row'),
    (MODIFY ORDER BY (account_id, kind, id, facet, writer))

CREATE TABLE IF NOT EXISTS rejects ON CLUSTER `lift-1`
(
    `rejected_at` DateTime64(3, 'UTC') COMMENT 'server clock' CODEC(Delta, ZSTD(1)),
    `website_id` Int64 COMMENT 'of the token, or as the line says; 0: it does not',
    `way` Enum8('import' = 1, 'http' = 2, 'inbox' = 3),
    `file` String COMMENT 'name of the file that was imported',
    `line` Int64 COMMENT 'number of the line or of the place in an array; 0: the whole body',
    `reason` String CODEC(ZSTD(1)),
    `text` String COMMENT 'beginning of the line, without what looks like a secret' CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (rejected_at, website_id)
TTL toDateTime(rejected_at) + toIntervalDay(7)

ALTER TABLE events_local ON CLUSTER `lift-1`
    (ADD INDEX IF NOT EXISTS ingested_at ingested_at TYPE minmax GRANULARITY 1)

ALTER TABLE events_local ON CLUSTER `lift-1`
    (MATERIALIZE INDEX ingested_at)
SETTINGS mutations_sync = 0

CREATE TABLE IF NOT EXISTS events_inbox ON CLUSTER `lift-1`
(
    `website_id` Int64 COMMENT 'has to be in the catalogue',
    `event_id` String COMMENT 'as sent; where empty, each row is an event of its own, also one that is inserted twice',
    `time` DateTime64(3, 'UTC') COMMENT 'of the event',
    `visitor` String COMMENT 'id of the visitor, any text',
    `event` String COMMENT 'view, click, submit, completion, conversion, contact or goal',
    `campaign_id` Nullable(Int64) COMMENT 'what the visitor saw: a campaign',
    `widget_id` Nullable(Int64) COMMENT 'or a widget; of neither, a goal counts for all that its visitor saw',
    `experiment_id` Nullable(Int64) COMMENT 'of the widget; not given: none',
    `variation_id` Nullable(Int64) COMMENT 'that the visitor saw; 0: control',
    `goal_id` Nullable(Int64) COMMENT 'of an event goal',
    `value` String COMMENT 'amount with at most 4 decimals; a text, so that none is rounded in silence; numbers are taken too',
    `profit` String COMMENT 'as value',
    `extra_value` String COMMENT 'as value',
    `device` String,
    `browser` String,
    `os` String,
    `country` String COMMENT 'two letters',
    `region` String,
    `city` String,
    `channel` String,
    `referrer` String,
    `utm_source` String,
    `utm_medium` String,
    `utm_campaign` String,
    `utm_content` String,
    `utm_term` String,
    `first_visit_page` String,
    `visitor_type` String COMMENT 'new, returning or empty',
    `row_id` UUID MATERIALIZED generateUUIDv4() COMMENT 'ours: the id of an event without one, the same however often the row is moved'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY tuple()
SETTINGS min_parts_to_merge_at_once = 500, max_parts_to_merge_at_once = 1000, parts_to_delay_insert = 5000, parts_to_throw_insert = 10000

ALTER TABLE events_local ON CLUSTER `lift-1`
    (ADD COLUMN IF NOT EXISTS `writer` LowCardinality(String) COMMENT 'process that wrote the row; empty where the store has one process'),
    (MODIFY ORDER BY (website_id, subject, subject_id, experiment_id, visitor_id, time, event_id, writer))

ALTER TABLE events ON CLUSTER `lift-1`
    (ADD COLUMN IF NOT EXISTS `writer` LowCardinality(String) COMMENT 'process that wrote the row; empty where the store has one process')

CREATE TABLE IF NOT EXISTS settled ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `subject` Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    `subject_id` Int64,
    `experiment_id` Int64,
    `generation` UInt64 COMMENT 'rows of different ones are never added up',
    `facet` LowCardinality(String) COMMENT 'which of the following columns are kept',
    `event` Enum8('seen' = 0, 'view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    `goal_id` Int64,
    `device` LowCardinality(String),
    `country` LowCardinality(String),
    `channel` LowCardinality(String),
    `browser` LowCardinality(String),
    `os` LowCardinality(String),
    `visitor_type` LowCardinality(String),
    `referrer` String,
    `utm_source` String,
    `utm_medium` String,
    `utm_campaign` String,
    `variation_id` Int64 COMMENT 'of the first view',
    `crossover` UInt8 COMMENT '1: saw more than one variation',
    `first_day` Date32,
    `day` Date32,
    `visitors` SimpleAggregateFunction(sum, Int64),
    `since_shares` SimpleAggregateFunction(sum, Int64) COMMENT 'of them, first exposed since the shares hold',
    `events` SimpleAggregateFunction(sum, Int64),
    `events_squares` SimpleAggregateFunction(sum, Int128),
    `value` SimpleAggregateFunction(sum, Int256) COMMENT 'sum · 2^128 + sum of squares, in 1/10000, as all amounts',
    `value_times_goals` SimpleAggregateFunction(sum, Int128),
    `profit` SimpleAggregateFunction(sum, Int256) COMMENT 'as value',
    `extra_value` SimpleAggregateFunction(sum, Int256) COMMENT 'as value',
    `signs` SimpleAggregateFunction(sum, Int256) COMMENT 'visitors whose value is not 0, + 2^40 · below 0, + 2^80 · (the same of profit), + 2^160 · (of extra value)'
)
ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
PARTITION BY (website_id, subject, subject_id, experiment_id, generation)
PRIMARY KEY (website_id, subject, subject_id, experiment_id, generation, facet, event, goal_id, device, country, channel, browser, os, visitor_type, referrer)
ORDER BY (website_id, subject, subject_id, experiment_id, generation, facet, event, goal_id, device, country, channel, browser, os, visitor_type, referrer, utm_source, utm_medium, utm_campaign, variation_id, crossover, first_day, day)
SETTINGS index_granularity = 256

ALTER TABLE settled ON CLUSTER `lift-1`
    (MODIFY SETTING min_compress_block_size = 2048, max_compress_block_size = 8192)

ALTER TABLE catalogue
    (ADD COLUMN IF NOT EXISTS `changed_by` String COMMENT 'token or command')

CREATE TABLE IF NOT EXISTS audit ON CLUSTER `lift-1`
(
    `account_id` Int64,
    `changed_at` DateTime64(3, 'UTC'),
    `changed_by` String COMMENT 'token or command',
    `kind` LowCardinality(String),
    `id` Int64,
    `facet` Enum8('definition' = 1, 'state' = 2),
    `version` UInt64,
    `archived` Bool COMMENT 'of a token: revoked',
    `body` String COMMENT 'JSON, after the change'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (account_id, changed_at, kind, id, facet, version)

CREATE MATERIALIZED VIEW IF NOT EXISTS audit_view ON CLUSTER `lift-1` TO audit
AS SELECT
    account_id,
    changed_at,
    changed_by,
    kind,
    id,
    facet,
    version,
    archived,
    body
FROM catalogue

ALTER TABLE settled ON CLUSTER `lift-1`
    (MODIFY SETTING min_bytes_for_wide_part = 1000000000000, min_rows_for_wide_part = 1000000000000)

ALTER TABLE events_inbox
    (COMMENT COLUMN value 'amount, a decimal number of any length, rounded half away from zero to 4 decimals; a String so that no float is involved; numbers are accepted too'),
    (COMMENT COLUMN profit 'as value'),
    (COMMENT COLUMN extra_value 'as value')

ALTER TABLE events_local ON CLUSTER `lift-1`
    (ADD COLUMN IF NOT EXISTS `derived` Bool DEFAULT false COMMENT 'made of a goal without exposures, for a subject that its visitor saw')

ALTER TABLE events ON CLUSTER `lift-1`
    (ADD COLUMN IF NOT EXISTS `derived` Bool DEFAULT false COMMENT 'made of a goal without exposures, for a subject that its visitor saw')

CREATE TABLE IF NOT EXISTS removed_copies ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `subject` Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    `subject_id` Int64,
    `experiment_id` Int64,
    `visitor_id` UInt64,
    `event_id` UInt64,
    `writer` LowCardinality(String),
    `ingested_at` DateTime64(3, 'UTC') COMMENT 'of the copy',
    `done` Bool COMMENT 'the copy is gone',
    `event` Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    `goal_id` Int64,
    `value` Int64 COMMENT 'in 1/10000',
    `extra_value` Int64 COMMENT 'in 1/10000'
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at, done)

CREATE VIEW IF NOT EXISTS subject_counters ON CLUSTER `lift-1`
AS SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    event,
    goal_id,
    toUInt64(rows) AS rows,
    toInt128(value) AS value,
    toInt128(extra_value) AS extra_value,
    toDateTime64(last_ingested, 3, 'UTC') AS last_ingested,
    toDateTime64(newest_event, 3, 'UTC') AS newest_event
FROM subject_stats
UNION ALL
SELECT
    website_id,
    subject,
    subject_id,
    experiment_id,
    event,
    goal_id,
    toUInt64(18446744073709551615) AS rows,
    -toInt128(value) AS value,
    -toInt128(extra_value) AS extra_value,
    toDateTime64(0, 3, 'UTC') AS last_ingested,
    toDateTime64(0, 3, 'UTC') AS newest_event
FROM
(
    SELECT DISTINCT
        website_id,
        subject,
        subject_id,
        experiment_id,
        event,
        goal_id,
        visitor_id,
        event_id,
        writer,
        ingested_at,
        value,
        extra_value
    FROM removed_copies
    WHERE done
)

CREATE TABLE IF NOT EXISTS rollups ON CLUSTER `lift-1`
(
    `bucket` UInt16 COMMENT 'large generations have a bucket of their own; the others share some',
    `generation` UInt64 COMMENT 'rows of different generations must not be added up',
    `website_id` SimpleAggregateFunction(any, Int64),
    `subject` SimpleAggregateFunction(any, Enum8('none' = 0, 'campaign' = 1, 'widget' = 2)),
    `subject_id` SimpleAggregateFunction(any, Int64),
    `experiment_id` SimpleAggregateFunction(any, Int64),
    `is_cell` UInt8 COMMENT '0: state',
    `cube_name` LowCardinality(String) COMMENT 'which of the following columns are dimensions',
    `event` Enum8('active' = 0, 'view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    `goal_id` Int64,
    `device` LowCardinality(String),
    `country` LowCardinality(String),
    `channel` LowCardinality(String),
    `browser` LowCardinality(String),
    `os` LowCardinality(String),
    `visitor_type` LowCardinality(String),
    `referrer` String,
    `utm_source` String,
    `utm_medium` String,
    `utm_campaign` String,
    `city` String,
    `variation_id` Int64 COMMENT 'variation of the first view',
    `multi_exposed` UInt8 COMMENT '1: the visitor saw more than one variation',
    `first_day` Date32,
    `day` Date32,
    `visitors` SimpleAggregateFunction(sum, Int64),
    `since_shares` SimpleAggregateFunction(sum, Int64) COMMENT 'visitors first exposed since the current shares took effect',
    `events` SimpleAggregateFunction(sum, Int64),
    `events_squares` SimpleAggregateFunction(sum, Int128),
    `value` SimpleAggregateFunction(sum, Int256) COMMENT 'sum · 2^128 + sum of squares, in 1/10000, like all amounts',
    `value_times_goals` SimpleAggregateFunction(sum, Int128),
    `profit` SimpleAggregateFunction(sum, Int256) COMMENT 'packed like value',
    `extra_value` SimpleAggregateFunction(sum, Int256) COMMENT 'packed like value',
    `signs` SimpleAggregateFunction(sum, Int256) COMMENT 'visitors with value != 0, + 2^40 · value < 0, + 2^80 · (the same for profit), + 2^160 · (for extra value)',
    `state` SimpleAggregateFunction(maxMap, Map(String, Int64)) COMMENT 'state of the generation; empty in other cubes'
)
ENGINE = AggregatingMergeTree
PARTITION BY bucket
PRIMARY KEY (is_cell, generation, cube_name, event, goal_id, device, country, channel, browser, os, visitor_type, referrer)
ORDER BY (is_cell, generation, cube_name, event, goal_id, device, country, channel, browser, os, visitor_type, referrer, utm_source, utm_medium, utm_campaign, city, variation_id, multi_exposed, first_day, day)
SETTINGS index_granularity = 256, min_compress_block_size = 2048, max_compress_block_size = 8192, min_bytes_for_wide_part = 1000000000000, min_rows_for_wide_part = 1000000000000, non_replicated_deduplication_window = 1000

DROP TABLE IF EXISTS settled ON CLUSTER `lift-1` SYNC

CREATE TABLE IF NOT EXISTS exposures ON CLUSTER `lift-1`
(
    `bucket` UInt16 COMMENT 'large generations have a bucket of their own; the others share some',
    `generation` UInt64 COMMENT 'rows of different generations must not be added up',
    `refresh` UInt64 COMMENT 'epoch · 2^20 + number',
    `segment` UInt8 COMMENT '4 · index of the variation of the first view + 2 if multi-exposed + 1 if the row cancels another one; 255: marker',
    `device` LowCardinality(String),
    `country` LowCardinality(String),
    `channel` LowCardinality(String),
    `browser` LowCardinality(String),
    `os` LowCardinality(String),
    `visitor_type` LowCardinality(String),
    `referrer` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_source` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_medium` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_campaign` LowCardinality(String) CODEC(ZSTD(1)),
    `region` LowCardinality(String) CODEC(ZSTD(1)),
    `city` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_content` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_term` LowCardinality(String) CODEC(ZSTD(1)),
    `first_visit_page` LowCardinality(String) CODEC(ZSTD(1)),
    `first_time` DateTime64(3, 'UTC') COMMENT 'time of the first view' CODEC(T64, LZ4),
    `first_day` Date32 MATERIALIZED toDate32(first_time) COMMENT 'cheaper to read than the time',
    `multi_exposed_at` DateTime64(3, 'UTC') COMMENT 'time of the first view of another variation; 1970: none' CODEC(ZSTD(1)),
    `views` UInt32 CODEC(T64, LZ4),
    `clicks` UInt32,
    `submits` UInt32,
    `completions` UInt32,
    `conversions` UInt32,
    `contacts` UInt32,
    `later_hours` Array(UInt32) COMMENT 'hours of the other events since the first view, ascending, after the hour of the first view' CODEC(ZSTD(1)),
    `later_kinds` Array(UInt8) COMMENT 'their kinds, as in the column event of events' CODEC(ZSTD(1)),
    `last_ms` UInt64 COMMENT 'time of the last event, in milliseconds after the first view' CODEC(T64, LZ4)
)
ENGINE = MergeTree
PARTITION BY bucket
ORDER BY (generation, device, country, os, region, city, browser, channel, first_time)

CREATE TABLE IF NOT EXISTS conversions ON CLUSTER `lift-1`
(
    `bucket` UInt16,
    `generation` UInt64,
    `refresh` UInt64,
    `segment` UInt8,
    `goal_id` Int64,
    `device` LowCardinality(String),
    `country` LowCardinality(String),
    `channel` LowCardinality(String),
    `browser` LowCardinality(String),
    `os` LowCardinality(String),
    `visitor_type` LowCardinality(String),
    `referrer` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_source` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_medium` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_campaign` LowCardinality(String) CODEC(ZSTD(1)),
    `region` LowCardinality(String) CODEC(ZSTD(1)),
    `city` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_content` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_term` LowCardinality(String) CODEC(ZSTD(1)),
    `first_visit_page` LowCardinality(String) CODEC(ZSTD(1)),
    `first_time` DateTime64(3, 'UTC') COMMENT 'time of the first view' CODEC(T64, LZ4),
    `visitor_id` UInt64,
    `since_ms` UInt64 COMMENT 'time of the event, in milliseconds after the first view' CODEC(T64, LZ4),
    `number` UInt32 COMMENT '1 for the first event of the goal by the visitor, 2 for the second, ...' CODEC(T64, LZ4),
    `value` Int64 COMMENT 'in 1/10000, like all amounts',
    `profit` Int64,
    `extra_value` Int64,
    `value_before` Int64 COMMENT 'sum over the earlier events of the goal by the visitor',
    `profit_before` Int64,
    `extra_value_before` Int64
)
ENGINE = MergeTree
PARTITION BY bucket
ORDER BY (generation, goal_id, device, country, os, region, city, browser, channel, first_time)

CREATE TABLE IF NOT EXISTS looks ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `subject` LowCardinality(String) COMMENT 'campaign or widget',
    `subject_id` Int64,
    `experiment_id` Int64,
    `question` UInt64 COMMENT 'hash of the declared rules: methodology, level, clock, variations',
    `goal_id` Int64 COMMENT '0: all goals count',
    `metric` LowCardinality(String),
    `variation_id` Int64,
    `look` UInt32 COMMENT 'number of the look, from 1',
    `ended_at` DateTime64(3, 'UTC') COMMENT 'end of the look',
    `body` String COMMENT 'JSON: counts, critical value, z, p, intervals',
    `recorded_at` DateTime64(3, 'UTC')
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (website_id, subject, subject_id, experiment_id, question, goal_id, metric, variation_id, look, recorded_at)

CREATE TABLE IF NOT EXISTS repeats ON CLUSTER `lift-1`
(
    `arrived_at` DateTime64(3, 'UTC') COMMENT 'server clock',
    `website_id` Int64,
    `subject` LowCardinality(String) COMMENT 'campaign, widget or none',
    `subject_id` Int64,
    `experiment_id` Int64,
    `visitor_id` UInt64,
    `event_id` UInt64,
    `conflict` Bool COMMENT 'the content differs from the stored row',
    `time` DateTime64(3, 'UTC') COMMENT 'this and all below: of the row that was not stored',
    `event` LowCardinality(String),
    `goal_id` Int64,
    `variation_id` Int64,
    `value` Int64 COMMENT 'in 1/10000',
    `way` LowCardinality(String) COMMENT 'import, http or inbox',
    `file` String COMMENT 'name of the imported file',
    `line` Int64 COMMENT 'line number; 0: unknown'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (visitor_id, arrived_at)
TTL toDateTime(arrived_at) + toIntervalDay(7)

CREATE TABLE IF NOT EXISTS unstored ON CLUSTER `lift-1`
(
    `minute` DateTime('UTC') COMMENT 'server clock',
    `website_id` Int64 COMMENT '0: unknown',
    `way` LowCardinality(String) COMMENT 'import, http or inbox',
    `verdict` LowCardinality(String) COMMENT 'rejected, duplicate or conflict',
    `cause` LowCardinality(String) COMMENT 'of a rejected line: the first invalid field, or a few words',
    `lines` UInt64
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (website_id, minute, way, verdict, cause)
TTL minute + toIntervalDay(8)

CREATE TABLE IF NOT EXISTS rollup_claims ON CLUSTER `lift-1`
(
    `number` UInt64,
    `kind` Enum8('rows' = 0, 'rebuild' = 1, 'removal' = 2, 'removed' = 3) COMMENT 'rows: of an epoch, or of a generation of rows of visitors; rebuild: of a generation; removal: a deletion of events begins; removed: it has ended',
    `claimant` String COMMENT 'the process and the try',
    `subject` String COMMENT 'rows, rebuild: whose rows they are',
    `removal` String COMMENT 'removed: the claimant of the deletion that has ended',
    `subjects` Array(String) COMMENT 'removed: those that lost events',
    `at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'server clock'
)
ENGINE = MergeTree
ORDER BY (kind, number)
TTL toDateTime(at) + toIntervalDay(30) WHERE kind IN ('rows', 'rebuild')
SETTINGS enable_block_number_column = 1

