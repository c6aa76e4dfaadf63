-- One row per subject with stored events or counters: the number of its events, which is 0 if only counters remain after
-- a crash.
SELECT
    website_id,
    toString(subject) AS of,
    subject_id,
    sum(n)            AS events
FROM
(
    SELECT website_id, subject, subject_id, count() AS n
    FROM events
    WHERE (website_id, subject, subject_id) IN arrayZip({website_ids:Array(Int64)}, {subjects:Array(String)}, {subject_ids:Array(Int64)})
    GROUP BY website_id, subject, subject_id
    UNION ALL
    SELECT website_id, subject, subject_id, toUInt64(0) AS n
    FROM subject_stats
    WHERE (website_id, subject, subject_id) IN arrayZip({website_ids:Array(Int64)}, {subjects:Array(String)}, {subject_ids:Array(Int64)})
    GROUP BY website_id, subject, subject_id
)
GROUP BY website_id, subject, subject_id
-- In clusters of earlier releases, subject_stats has a sharding key, but its rows are on the shards of the events.
SETTINGS optimize_skip_unused_shards = 0
