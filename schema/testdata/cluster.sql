CREATE TABLE IF NOT EXISTS migrations ON CLUSTER `lift-1`
(
    `name` String,
    `checksum` String,
    `applied_at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY name

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

CREATE TABLE IF NOT EXISTS catalogue ON CLUSTER `lift-1`
(
    `account_id` Int64 COMMENT 'owner; an account row carries its own id',
    `kind` LowCardinality(String) COMMENT 'account, token, website, goal, target, campaign, widget or webhook',
    `id` Int64 COMMENT 'unique within account and kind; websites are unique over all accounts',
    `facet` Enum8('definition' = 1, 'state' = 2, 'salt' = 3),
    `version` UInt64 COMMENT 'highest stands',
    `body` String COMMENT 'JSON',
    `archived` Bool COMMENT 'true hides the resource; its events stay',
    `changed_at` DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    `writer` String COMMENT 'process that wrote the row',
    `changed_by` String COMMENT 'token or command'
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}', version)
ORDER BY (account_id, kind, id, facet, writer)

CREATE TABLE IF NOT EXISTS customers ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `customer_id` UInt64,
    `goal_id` Int64 COMMENT '0: the customer had bought at this time',
    `event_id` UInt64 COMMENT 'as in events; 0 if goal_id is',
    `visitor_id` UInt64 COMMENT '0: the order names no visitor',
    `revision` UInt64 COMMENT 'of a goal as in events; otherwise the time in Unix milliseconds' CODEC(T64, ZSTD(1)),
    `time` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `cancelled` Bool,
    `value` Int64 COMMENT 'in 1/10000, as all amounts',
    `profit` Int64,
    `extra_value` Int64,
    `details` String COMMENT 'as in events' CODEC(ZSTD(1)),
    `ingested_at` DateTime64(3, 'UTC') COMMENT 'acceptance time, by the clock of the server' CODEC(Delta, ZSTD(1)),
    `version` UInt64 MATERIALIZED (18446744073709551615 - bitShiftLeft(toUInt64(toUnixTimestamp64Milli(ingested_at)), 16)) - bitAnd(cityHash64(time, cancelled, value, profit, extra_value, details), 65535) CODEC(Delta, ZSTD(1)),
    INDEX ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}', version)
ORDER BY (website_id, customer_id, goal_id, event_id, visitor_id, revision)
SETTINGS index_granularity = 512

CREATE TABLE IF NOT EXISTS daily ON CLUSTER `lift-1`
(
    `kind` Enum8('checked' = 1, 'judged' = 2, 'tested' = 3, 'measured' = 4) COMMENT 'looks and harm were; the decision was; the split of imported events was; the interactions of a website were',
    `website_id` Int64,
    `subject` LowCardinality(String) COMMENT 'campaign or widget; none: the website',
    `subject_id` Int64,
    `experiment_id` Int64,
    `version` UInt64 COMMENT 'greater than that of the row before, whatever the clock says; highest counts',
    `day` Date COMMENT 'on which it was done',
    `basis` UInt64 COMMENT 'hash of what it was based on: the definition, the recorded looks, the interactions, the number of events',
    `body` String COMMENT 'JSON: the interactions that were measured; else empty'
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}', version)
ORDER BY (kind, website_id, subject, subject_id, experiment_id)

CREATE TABLE IF NOT EXISTS deliveries ON CLUSTER `lift-1`
(
    `account_id` Int64,
    `webhook_id` Int64,
    `message_id` String,
    `attempted_at` DateTime64(3, 'UTC'),
    `outcome` Enum8('delivered' = 1, 'retrying' = 2, 'failed' = 3, 'requested' = 4),
    `status` UInt16 COMMENT 'HTTP status of the response; 0: no response',
    `detail` String COMMENT 'why the attempt failed, or who requested it'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (account_id, webhook_id, message_id, attempted_at)

CREATE TABLE IF NOT EXISTS documents ON CLUSTER `lift-1`
(
    `account_id` Int64,
    `website_id` Int64,
    `subject` LowCardinality(String) COMMENT 'campaign or widget; empty: a picture',
    `subject_id` Int64,
    `experiment_id` Int64,
    `document_id` String COMMENT 'hash of what the body is made from, 32 hexadecimal digits',
    `kind` Enum8('readout' = 1, 'picture' = 2),
    `look` UInt32 COMMENT 'number of the look; 0: it is about all full days',
    `ended_at` DateTime64(3, 'UTC') COMMENT 'end of the look, or of the last full day; of a picture as made_at',
    `made_at` DateTime64(3, 'UTC'),
    `made_by` String COMMENT 'token or command; empty: the server',
    `media_type` LowCardinality(String),
    `summary` String COMMENT 'JSON: the answer, and the figures that later data may change',
    `digest` String COMMENT 'SHA-256 of the body, hexadecimal',
    `size` UInt64 COMMENT 'of the body, in bytes',
    `body` String CODEC(ZSTD(3)),
    `withdrawn_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'of the row that withdraws the document',
    `withdrawn_by` String
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (account_id, website_id, subject, subject_id, experiment_id, document_id, made_at)
SETTINGS index_granularity = 16, non_replicated_deduplication_window = 1000

CREATE TABLE IF NOT EXISTS events_local ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `visitor_id` UInt64 COMMENT 'xxHash64 of the visitor as sent',
    `subject` Enum8('none' = 0, 'campaign' = 1, 'widget' = 2) COMMENT 'none: a goal without exposures',
    `subject_id` Int64,
    `experiment_id` Int64 COMMENT 'experiment of a widget; 0: none',
    `event_id` UInt64 COMMENT 'xxHash64 of the event id as sent',
    `revision` UInt64 COMMENT 'of a goal: of several, the state of the highest one counts; often Unix milliseconds' CODEC(T64, ZSTD(1)),
    `cancelled` Bool COMMENT 'of a goal: it does not count',
    `time` DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `variation_id` Int64 COMMENT '0: control',
    `event` Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    `goal_id` Int64 COMMENT '0 unless the event is a goal',
    `value` Int64 COMMENT 'in 1/10000, as all amounts, so that sums are exact',
    `profit` Int64,
    `extra_value` Int64,
    `attributes` String COMMENT 'of the visit: the next 15 columns, separated by \\0; empty if all are' CODEC(ZSTD(1)),
    `device` String ALIAS splitByChar('\0', attributes)[1],
    `country` String ALIAS splitByChar('\0', attributes)[2],
    `channel` String ALIAS splitByChar('\0', attributes)[3],
    `browser` String ALIAS splitByChar('\0', attributes)[4],
    `os` String ALIAS splitByChar('\0', attributes)[5],
    `visitor_type` String ALIAS splitByChar('\0', attributes)[6],
    `referrer` String ALIAS splitByChar('\0', attributes)[7],
    `utm_source` String ALIAS splitByChar('\0', attributes)[8],
    `utm_medium` String ALIAS splitByChar('\0', attributes)[9],
    `utm_campaign` String ALIAS splitByChar('\0', attributes)[10],
    `city` String ALIAS splitByChar('\0', attributes)[11],
    `region` String ALIAS splitByChar('\0', attributes)[12],
    `utm_content` String ALIAS splitByChar('\0', attributes)[13],
    `utm_term` String ALIAS splitByChar('\0', attributes)[14],
    `first_visit_page` String ALIAS splitByChar('\0', attributes)[15],
    `details` String COMMENT 'canonical JSON of what few events have, see schema.Details; empty: nothing' CODEC(ZSTD(1)),
    `currency` String ALIAS JSONExtractString(details, 'currency'),
    `customer` String ALIAS JSONExtractString(details, 'customer'),
    `ingested_at` DateTime64(3, 'UTC') COMMENT 'acceptance time, by the clock of the server' CODEC(Delta, ZSTD(1)),
    `version` UInt64 MATERIALIZED (18446744073709551615 - bitShiftLeft(toUInt64(toUnixTimestamp64Milli(ingested_at)), 16)) - bitAnd(cityHash64(time, cancelled, variation_id, event, goal_id, value, profit, extra_value, attributes, details), 65535) CODEC(Delta, ZSTD(1)),
    INDEX ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/{shard}', '{replica}', version)
ORDER BY (website_id, visitor_id, subject, subject_id, experiment_id, event_id, revision)
SETTINGS index_granularity = 512, min_bytes_for_wide_part = 1099511627776, replicated_deduplication_window = 1000

CREATE TABLE IF NOT EXISTS events ON CLUSTER `lift-1` AS events_local
ENGINE = Distributed('lift-1', currentDatabase(), 'events_local', visitor_id)

CREATE TABLE IF NOT EXISTS events_inbox ON CLUSTER `lift-1`
(
    `website_id` Int64 COMMENT 'has to be in the catalogue',
    `event_id` String COMMENT 'as sent; where empty, each row is an event of its own, also one that is inserted twice',
    `time` DateTime64(3, 'UTC') COMMENT 'of the event',
    `visitor` String COMMENT 'id of the visitor, any text; empty: only of a goal or a customer',
    `event` String COMMENT 'view, click, submit, completion, conversion, contact, goal or customer',
    `campaign_id` String COMMENT 'what the visitor saw: id or key of a campaign; numbers are accepted too',
    `widget_id` Nullable(Int64) COMMENT 'or a widget; of neither, a goal counts for all that its visitor saw',
    `experiment_id` Nullable(Int64) COMMENT 'of the widget; not given: none',
    `variation_id` String COMMENT 'id or key of what the visitor saw; 0 or control: control',
    `goal_id` String COMMENT 'id or key of the goal of an event goal',
    `value` String COMMENT 'amount, a decimal number of any length, rounded half away from zero to 4 decimals; a String so that no float is involved; numbers are accepted too',
    `profit` String COMMENT 'as value',
    `extra_value` String COMMENT 'as value',
    `currency` String COMMENT 'of the amounts, such as EUR; empty: that of the website',
    `customer` String COMMENT 'of a goal: the shop\'s id or the e-mail of the buyer; stored as a hash. A goal without exposures may then have no visitor',
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
    `revision` String COMMENT 'of a goal: of several with one event_id, the state of the highest one counts; numbers are accepted too',
    `cancelled` String COMMENT 'of a goal: true if it does not count; booleans are accepted too',
    `attributes` String COMMENT 'own attributes of the visitor: a JSON object of names and texts or booleans',
    `properties` String COMMENT 'of a goal: a JSON object of names and texts, booleans or numbers',
    `items` String COMMENT 'lines of the order that a goal is: a JSON array of objects',
    `row_id` UUID MATERIALIZED generateUUIDv4() COMMENT 'ours: the id of an event without one, the same however often the row is moved'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY tuple()
SETTINGS min_parts_to_merge_at_once = 500, max_parts_to_merge_at_once = 1000, parts_to_delay_insert = 5000, parts_to_throw_insert = 10000

CREATE TABLE IF NOT EXISTS facts_local ON CLUSTER `lift-1`
(
    `section` UInt64 COMMENT 'grain · 2^60 + generation modulo 2 · 2^59 + hash of website, subject and experiment',
    `website_id` Int64,
    `subject` Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    `subject_id` Int64,
    `experiment_id` Int64,
    `grain` Enum8('visitor' = 1, 'goal' = 2, 'all' = 3, 'day' = 4, 'position' = 5),
    `goal_id` Int64 COMMENT '0: visitors; -1: returns, see fold.Returns',
    `sign` Int8 COMMENT '-1: cancels an equal row',
    `variation` LowCardinality(String) COMMENT 'id of the variation of the first view, + if the visitor saw others; ! at its end, or empty: events that do not count, and ! if the visitor is automated; of a position: the currencies of the websites, see facts.Position, as for its other columns',
    `visitor_id` UInt64,
    `device` LowCardinality(String) COMMENT 'of the first view, like all attributes',
    `country` LowCardinality(String),
    `channel` LowCardinality(String),
    `browser` LowCardinality(String),
    `os` LowCardinality(String),
    `visitor_type` LowCardinality(String),
    `referrer` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_source` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_medium` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_campaign` LowCardinality(String) CODEC(ZSTD(1)),
    `city` LowCardinality(String) CODEC(ZSTD(1)),
    `region` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_content` LowCardinality(String) CODEC(ZSTD(1)),
    `utm_term` LowCardinality(String) CODEC(ZSTD(1)),
    `first_visit_page` LowCardinality(String) CODEC(ZSTD(1)),
    `first_time` DateTime64(3, 'UTC') COMMENT 'time of the first view' CODEC(T64, LZ4),
    `first_day` Date MATERIALIZED toDate(least(first_time, toDateTime64('2149-06-06 00:00:00', 3, 'UTC'))) COMMENT 'cheaper to read than the time; its last value is 2149-06-06' CODEC(T64, LZ4),
    `since_ms` UInt64 COMMENT 'time of the goal event, or of the last event of the visitor, in milliseconds after first_time' CODEC(T64, LZ4),
    `number` UInt32 COMMENT 'of a goal event among those of the visitor and goal, from 1; of an automated visitor: the limit of events; of a position: number of the refresh; its visitor_id is random' CODEC(T64, LZ4),
    `multi_exposed_at` DateTime64(3, 'UTC') COMMENT 'time of the visitor\'s first view of another variation; 1970: none' CODEC(ZSTD(1)),
    `seen` UInt32 COMMENT 'of a visitor: number of events of the subject that the row is made of' CODEC(T64, LZ4),
    `digest` UInt64 COMMENT 'XOR of their hashes',
    `views` UInt32 CODEC(T64, LZ4),
    `clicks` UInt32,
    `submits` UInt32,
    `completions` UInt32,
    `conversions` UInt32,
    `contacts` UInt32,
    `later_ms` Array(UInt64) COMMENT 'times of the other events, in milliseconds after the first view, ascending' CODEC(ZSTD(1)),
    `later_kinds` Array(UInt8) COMMENT 'their kinds, as in the column event of events' CODEC(ZSTD(1)),
    `value` Int64 COMMENT 'of a goal event, in 1/10000 of the currency of the website, like all amounts; of a position: number of rates',
    `profit` Int64 COMMENT 'of a position: when the last of the rates was declared',
    `extra_value` Int64,
    `value_before` Int64 COMMENT 'sum over the earlier events of the visitor and goal',
    `profit_before` Int64,
    `extra_value_before` Int64,
    `marks` UInt8 COMMENT 'of a goal event, bits: 1: there is no rate for its amounts, which are 0 here; 4: it is an order of the visitor\'s customer that names no visitor' CODEC(T64, LZ4),
    `foreign_currency` LowCardinality(String) COMMENT 'in which the amounts of a goal event were sent; empty: that of the website',
    `custom` LowCardinality(String) COMMENT 'own attributes of the first view: name=value\0 of each, by name' CODEC(ZSTD(1)),
    `properties` LowCardinality(String) COMMENT 'of a goal event: name=text\0 or name#number\0 of each, by name; numbers in 1/10000' CODEC(ZSTD(1)),
    `item_product` Array(LowCardinality(String)) COMMENT 'of the lines of a goal event, as the next columns' CODEC(ZSTD(1)),
    `item_variant` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `item_category` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `item_brand` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `item_name` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `item_quantity` Array(Int64) COMMENT 'in 1/10000' CODEC(ZSTD(1)),
    `item_revenue` Array(Int64) CODEC(ZSTD(1)),
    `item_profit` Array(Int64) CODEC(ZSTD(1)),
    `sums` Array(Int128) COMMENT 'of a cell: fold.CellSums; then fold.Extent'
)
ENGINE = ReplicatedCollapsingMergeTree('/clickhouse/lifthouse/{uuid}/{shard}', '{replica}', sign)
PARTITION BY bitAnd(bitShiftRight(section, 59), 1)
PRIMARY KEY (section, goal_id, device, country, variation, os, region, city)
ORDER BY (section, goal_id, device, country, variation, os, region, city, browser, channel, first_time, visitor_id, since_ms, number)
SETTINGS index_granularity = 2048, non_replicated_deduplication_window = 10000, replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800

CREATE TABLE IF NOT EXISTS facts ON CLUSTER `lift-1` AS facts_local
ENGINE = Distributed('lift-1', currentDatabase(), 'facts_local', visitor_id)

CREATE TABLE IF NOT EXISTS files ON CLUSTER `lift-1`
(
    `digest` UInt64 COMMENT 'xxHash64 of the content and the mapping',
    `path` String,
    `rows` UInt64 COMMENT 'that were accepted',
    `imported_at` DateTime64(3, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (digest, path)

CREATE TABLE IF NOT EXISTS leases ON CLUSTER `lift-1`
(
    `holder` String,
    `at` DateTime64(3, 'UTC'),
    `until` DateTime64(3, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}', at)
ORDER BY holder

CREATE TABLE IF NOT EXISTS looks ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `subject` LowCardinality(String) COMMENT 'campaign or widget',
    `subject_id` Int64,
    `experiment_id` Int64,
    `question` UInt64 COMMENT 'hash of the declared rules: methodology, level, clock, variations',
    `goal_id` Int64 COMMENT '0: all goals count',
    `metric` LowCardinality(String),
    `conversion_window` LowCardinality(String) COMMENT 'such as 7d; none: no limit',
    `kind` Enum8('look' = 1, 'harm' = 2, 'end' = 3, 'returns' = 4, 'split' = 5, 'followUp' = 6),
    `variation_id` Int64,
    `look` UInt32 COMMENT 'number of the look, from 1; of an end: of full days; of a follow-up: days of the window; else 0',
    `ended_at` DateTime64(3, 'UTC') COMMENT 'end of the look, or of the last full day',
    `body` String COMMENT 'JSON: sums, critical value, z, p, intervals',
    `recorded_at` DateTime64(3, 'UTC')
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (website_id, subject, subject_id, experiment_id, question, goal_id, metric, conversion_window, kind, variation_id, look, recorded_at)

CREATE TABLE IF NOT EXISTS messages ON CLUSTER `lift-1`
(
    `account_id` Int64,
    `recorded_at` DateTime64(3, 'UTC'),
    `message_id` String COMMENT 'hash of the account, the subject and what happened',
    `event` LowCardinality(String) COMMENT 'such as decision.changed',
    `website_id` Int64,
    `subject` LowCardinality(String) COMMENT 'campaign or widget',
    `subject_id` Int64,
    `experiment_id` Int64,
    `state` LowCardinality(String) COMMENT 'the decision, or the check',
    `body` String COMMENT 'JSON, as it is sent'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (account_id, recorded_at, message_id)

CREATE TABLE IF NOT EXISTS names ON CLUSTER `lift-1`
(
    `website_id` Int64,
    `kind` Enum8('campaign' = 1, 'variation' = 2, 'goal' = 3, 'attribute' = 4, 'property' = 5, 'number' = 6),
    `campaign_id` Int64 COMMENT 'of a variation; otherwise 0',
    `id` Int64,
    `key` String COMMENT 'as sent; empty: only the id was sent; of a value of an attribute: name=value',
    `source` String COMMENT 'that sent it first: name of the token, or of the file',
    `first_at` DateTime64(3, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (website_id, kind, campaign_id, id, key)

CREATE TABLE IF NOT EXISTS notes ON CLUSTER `lift-1`
(
    `account_id` Int64,
    `website_id` Int64,
    `subject` LowCardinality(String) COMMENT 'campaign or widget; none: the website',
    `subject_id` Int64,
    `experiment_id` Int64,
    `note_id` String COMMENT 'random',
    `at` DateTime64(3, 'UTC') COMMENT 'when it was written, or withdrawn',
    `by` String COMMENT 'token or command, that wrote or withdrew it',
    `kind` Enum8('note' = 1, 'annotation' = 2),
    `starts_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'of an annotation',
    `ends_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'of an annotation; NULL: it is about an instant',
    `text` String COMMENT 'empty in the row that withdraws',
    `link` String COMMENT 'empty: none',
    `withdrawn` Bool COMMENT 'the row withdraws the note'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (account_id, website_id, subject, subject_id, experiment_id, note_id, withdrawn, at)

CREATE TABLE IF NOT EXISTS rates ON CLUSTER `lift-1`
(
    `account_id` Int64,
    `base` LowCardinality(String) COMMENT 'ISO 4217',
    `currency` LowCardinality(String) COMMENT 'ISO 4217',
    `day` Date COMMENT 'converts the orders of the next days (UTC)',
    `rate` String COMMENT 'decimal number, as it was imported',
    `source` String COMMENT 'name of the file, or of the token',
    `declared_at` DateTime64(3, 'UTC') COMMENT 'later than that of all rows before'
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (account_id, currency, day, declared_at)

CREATE TABLE IF NOT EXISTS rejects ON CLUSTER `lift-1`
(
    `rejected_at` DateTime64(3, 'UTC') COMMENT 'server clock' CODEC(Delta, ZSTD(1)),
    `website_id` Int64 COMMENT 'of the token, or as the line says; 0: it does not',
    `channel` Enum8('import' = 1, 'http' = 2, 'inbox' = 3),
    `file` String COMMENT 'name of the file that was imported',
    `line` Int64 COMMENT 'number of the line or of the place in an array; 0: the whole body',
    `reason` String CODEC(ZSTD(1)),
    `text` String COMMENT 'beginning of the line, without what looks like a secret' CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree('/clickhouse/lifthouse/{uuid}/all', '{shard}-{replica}')
ORDER BY (rejected_at, website_id)
TTL toDateTime(rejected_at) + toIntervalDay(7)

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
WHERE facet != 'salt'

