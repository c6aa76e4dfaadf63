-- One row per acceptance time of events that are not in the rollup, in ascending order.
SELECT
    ingested_at,
    count() AS events
FROM events
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND ingested_at > {since:DateTime64(3, 'UTC')}
    AND ingested_at <= {through:DateTime64(3, 'UTC')}
GROUP BY ingested_at
ORDER BY ingested_at
