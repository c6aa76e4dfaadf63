-- Every event, one self-contained row each, so that no report joins.
--
-- ORDER BY: one subject is one contiguous range, ordered by visitor and then time: a report reads one range and
-- meets each visitor's rows together; the writer finds a visitor's earlier events by key. event_id closes the key, so
-- that a copy that two writing servers raced into the table has an equal key and disappears in a merge.
-- PARTITION BY: months, because weekly parts made look-ups by visitor 4-6 times dearer.
-- index_granularity 512: look-ups read a few hundred rows around a visitor, not 8192.
-- Money is counted in 1/10000 of the sender's unit, in integers, so that sums are exact and free of order.
CREATE TABLE IF NOT EXISTS events
(
    website_id       Int64,
    subject          Enum8('none' = 0, 'campaign' = 1, 'widget' = 2),
    subject_id       Int64,
    experiment_id    Int64                  COMMENT 'experiment of a widget; 0: none',
    visitor_id       UInt64                 COMMENT 'xxHash64 of the visitor as sent',
    time             DateTime64(3, 'UTC')   CODEC(Delta, ZSTD(1)),
    event_id         UInt64                 COMMENT 'xxHash64 of the event id as sent; a row is identified by it, the website, the subject and the experiment',
    variation_id     Int64                  COMMENT '0: control',
    event            Enum8('view' = 1, 'click' = 2, 'submit' = 3, 'completion' = 4, 'conversion' = 5, 'contact' = 6, 'goal' = 7),
    goal_id          Int64                  COMMENT '0 where the event is no goal',
    value            Int64                  COMMENT 'in 1/10000',
    profit           Int64                  COMMENT 'in 1/10000',
    extra_value      Int64                  COMMENT 'in 1/10000',
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
    ingested_at      DateTime64(3, 'UTC')   COMMENT 'server clock at acceptance' CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(time)
ORDER BY (website_id, subject, subject_id, experiment_id, visitor_id, time, event_id)
SETTINGS index_granularity = 512
