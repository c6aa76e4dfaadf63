-- One row per wrong counter: the difference between events and subject_stats.
-- rows is a UInt64 that wraps around: adding 2^64 - n subtracts n.
SELECT
    website_id, subject, subject_id, experiment_id, event, goal_id,
    toUInt64(sumIf(n, stored) - sumIf(n, NOT stored))                     AS missing_rows,
    sumIf(v, stored) - sumIf(v, NOT stored)                               AS missing_value,
    sumIf(x, stored) - sumIf(x, NOT stored)                               AS missing_extra_value,
    maxIf(ingested, stored)                                               AS events_ingested,
    maxIf(newest, stored)                                                 AS events_newest
FROM
(
    SELECT
        true AS stored, website_id, subject, subject_id, experiment_id, event, goal_id,
        count() AS n, sum(toInt128(value)) AS v, sum(toInt128(extra_value)) AS x,
        max(ingested_at) AS ingested, max(time) AS newest
    FROM events
    GROUP BY website_id, subject, subject_id, experiment_id, event, goal_id
    UNION ALL
    SELECT
        false, website_id, subject, subject_id, experiment_id, event, goal_id,
        sum(rows), sum(value), sum(extra_value),
        max(last_ingested), max(newest_event)
    FROM subject_counters
    GROUP BY website_id, subject, subject_id, experiment_id, event, goal_id
)
GROUP BY website_id, subject, subject_id, experiment_id, event, goal_id
HAVING missing_rows != 0 OR missing_value != 0 OR missing_extra_value != 0
    OR events_ingested > maxIf(ingested, NOT stored) OR events_newest > maxIf(newest, NOT stored)
