-- The events as they were sent: a row per event and exposure. Copies are harmless, because only the fold
-- (engine/fold) reads events, and it removes copies. Merges remove copies, too. Of several copies, the first one
-- to arrive counts: it has the highest version. The last 16 bits of the version are a hash of the content, so that of
-- copies with other content that arrived in the same millisecond, merges and the fold keep the same one.
--
-- ORDER BY: all events of a visitor are in one range, including goals without exposures. The rest of the key is
-- the identity of an event and its revision: merges remove copies of a revision, and never a revision. The time is not
-- part of the key, so an event that is sent again with another time is a copy.
-- No partitions: the rows of a visitor are in few parts, and a late event is not in a part of its own.
-- The attributes are one column, and all columns of a part are in one file (min_bytes_for_wide_part): a refresh reads a
-- few hundred rows around each visitor (index_granularity), and each column of them takes 20 µs, whatever it holds. With
-- a column for each attribute and a file for each column, 1,000 visitors take four times as much CPU time, and merges
-- half as much again.
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
    attributes       String                 COMMENT 'of the visit: the next 15 columns, separated by \\0; empty if all are' CODEC(ZSTD(1)),
    device           String                 ALIAS splitByChar('\0', attributes)[1],
    country          String                 ALIAS splitByChar('\0', attributes)[2],
    channel          String                 ALIAS splitByChar('\0', attributes)[3],
    browser          String                 ALIAS splitByChar('\0', attributes)[4],
    os               String                 ALIAS splitByChar('\0', attributes)[5],
    visitor_type     String                 ALIAS splitByChar('\0', attributes)[6],
    referrer         String                 ALIAS splitByChar('\0', attributes)[7],
    utm_source       String                 ALIAS splitByChar('\0', attributes)[8],
    utm_medium       String                 ALIAS splitByChar('\0', attributes)[9],
    utm_campaign     String                 ALIAS splitByChar('\0', attributes)[10],
    city             String                 ALIAS splitByChar('\0', attributes)[11],
    region           String                 ALIAS splitByChar('\0', attributes)[12],
    utm_content      String                 ALIAS splitByChar('\0', attributes)[13],
    utm_term         String                 ALIAS splitByChar('\0', attributes)[14],
    first_visit_page String                 ALIAS splitByChar('\0', attributes)[15],
    details          String                 COMMENT 'canonical JSON of what few events have, see schema.Details; empty: nothing' CODEC(ZSTD(1)),
    currency         String                 ALIAS JSONExtractString(details, 'currency'),
    customer         String                 ALIAS JSONExtractString(details, 'customer'),
    ingested_at      DateTime64(3, 'UTC')   COMMENT 'acceptance time, by the clock of the server' CODEC(Delta, ZSTD(1)),
    version          UInt64                 MATERIALIZED 18446744073709551615
        - bitShiftLeft(toUInt64(toUnixTimestamp64Milli(ingested_at)), 16)
        - bitAnd(cityHash64(time, cancelled, variation_id, event, goal_id, value, profit, extra_value, attributes, details), 65535)
        CODEC(Delta, ZSTD(1)),
    INDEX ingested_at ingested_at TYPE minmax GRANULARITY 1
)
ENGINE = {{.Replicated}}ReplacingMergeTree({{with .Shard}}{{.}}, {{end}}version)
ORDER BY (website_id, visitor_id, subject, subject_id, experiment_id, event_id, revision)
SETTINGS index_granularity = 512, min_bytes_for_wide_part = 1099511627776{{if .Cluster}}, replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS events{{.On}} AS events_local
ENGINE = Distributed({{.Cluster}}, currentDatabase(), 'events_local', visitor_id){{end}}
