-- The events as they were sent: a row per event and exposure. Copies are harmless, because only the fold
-- (engine/fold) reads events, and it removes copies. Merges remove copies, too. Of several copies, the first one
-- to arrive counts: it has the highest version. The last 16 bits of the version are a hash of the content, so that of
-- copies with other content that arrived in the same millisecond, merges and the fold keep the same one.
--
-- ORDER BY: all events of a visitor are in one range, including goals without exposures. The rest of the key is
-- the identity of an event and its revision: merges remove copies of a revision, and never a revision. The time is not
-- part of the key, so an event that is sent again with another time is a copy.
-- No partitions: the rows of a visitor are in few parts, and a late event is not in a part of its own.
-- index_granularity: a refresh reads a few hundred rows around a visitor. min_compress_block_size: it decompresses a
-- block of each column, which by default has at least 64 KiB. Smaller ones take 2 % more disk space, and reading 100
-- visitors takes two thirds of the CPU time.
CREATE TABLE IF NOT EXISTS events{{.Local}}{{.On}}
(
    website_id       Int64,
    visitor_id       UInt64                 COMMENT 'xxHash64 of the visitor as sent',
    subject          Enum8('none' = 0, 'campaign' = 1, 'widget' = 2) COMMENT 'none: a goal without exposures',
    subject_id       Int64,
    experiment_id    Int64                  COMMENT 'experiment of a widget; 0: none',
    event_id         UInt64                 COMMENT 'xxHash64 of the event id as sent',
    revision         UInt64                 COMMENT 'of a goal: of several, the state of the highest one counts; often Unix milliseconds' CODEC(T64, ZSTD(1)),
    cancelled        Bool                   COMMENT 'of a goal: it does not count',
    time             DateTime64(3, 'UTC')   CODEC(Delta, ZSTD(1)),
    variation_id     Int64                  COMMENT '0: control',
    event            Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    goal_id          Int64                  COMMENT '0 unless the event is a goal',
    value            Int64                  COMMENT 'in 1/10000, as all amounts, so that sums are exact',
    profit           Int64,
    extra_value      Int64,
    device           LowCardinality(String),
    browser          LowCardinality(String),
    os               LowCardinality(String),
    country          LowCardinality(String),
    region           String                 CODEC(ZSTD(1)),
    city             String                 CODEC(ZSTD(1)),
    channel          LowCardinality(String),
    referrer         String                 CODEC(ZSTD(1)),
    utm_source       String                 CODEC(ZSTD(1)),
    utm_medium       String                 CODEC(ZSTD(1)),
    utm_campaign     String                 CODEC(ZSTD(1)),
    utm_content      String                 CODEC(ZSTD(1)),
    utm_term         String                 CODEC(ZSTD(1)),
    first_visit_page String                 CODEC(ZSTD(1)),
    visitor_type     LowCardinality(String) COMMENT 'new, returning or empty',
    ingested_at      DateTime64(3, 'UTC')   COMMENT 'acceptance time, by the clock of the server' CODEC(Delta, ZSTD(1)),
    version          UInt64                 MATERIALIZED 18446744073709551615
        - bitShiftLeft(toUInt64(toUnixTimestamp64Milli(ingested_at)), 16)
        - bitAnd(cityHash64(time, cancelled, variation_id, event, goal_id, value, profit, extra_value, device, browser, os,
            country, region, city, channel, referrer, utm_source, utm_medium, utm_campaign, utm_content, utm_term,
            first_visit_page, visitor_type), 65535) CODEC(Delta, ZSTD(1)),
    INDEX ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = {{.Replicated}}ReplacingMergeTree({{with .Shard}}{{.}}, {{end}}version)
ORDER BY (website_id, visitor_id, subject, subject_id, experiment_id, event_id, revision)
SETTINGS index_granularity = 512, min_compress_block_size = 16384{{if .Cluster}}, replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS events{{.On}} AS events_local
ENGINE = Distributed({{.Cluster}}, currentDatabase(), 'events_local', visitor_id){{end}}
