-- subject_stats without the copies that were removed. Read it with sum() and max(), as subject_stats.
-- rows is a UInt64 that wraps: adding 2^64 - 1 takes one away.
CREATE VIEW IF NOT EXISTS subject_counters AS
SELECT
    website_id, subject, subject_id, experiment_id, event, goal_id,
    toUInt64(rows)                             AS rows,
    toInt128(value)                            AS value,
    toInt128(extra_value)                      AS extra_value,
    toDateTime64(last_ingested, 3, 'UTC')      AS last_ingested,
    toDateTime64(newest_event, 3, 'UTC')       AS newest_event
FROM subject_stats
UNION ALL
SELECT
    website_id, subject, subject_id, experiment_id, event, goal_id,
    toUInt64(18446744073709551615)             AS rows,
    -toInt128(value)                           AS value,
    -toInt128(extra_value)                     AS extra_value,
    toDateTime64(0, 3, 'UTC')                  AS last_ingested,
    toDateTime64(0, 3, 'UTC')                  AS newest_event
FROM
(
    -- one row per copy
    SELECT DISTINCT
        website_id, subject, subject_id, experiment_id, event, goal_id,
        visitor_id, event_id, writer, ingested_at, value, extra_value
    FROM removed_copies
    WHERE done
)
