-- One row per website, campaign or widget with its experiment, variation and goal: the number of rows accepted in the
-- last hour, day and week, and how many of these were accepted more than an hour after they happened.
SELECT
    website_id, subject, subject_id, experiment_id, variation_id, goal_id,
    countIf(ingested_at >= {hour:DateTime64(3, 'UTC')})                                       AS of_hour,
    countIf(ingested_at >= {day:DateTime64(3, 'UTC')})                                        AS of_day,
    count()                                                                                   AS of_week,
    countIf(ingested_at >= {hour:DateTime64(3, 'UTC')} AND ingested_at > time + INTERVAL 1 HOUR) AS late_of_hour,
    countIf(ingested_at >= {day:DateTime64(3, 'UTC')} AND ingested_at > time + INTERVAL 1 HOUR)  AS late_of_day,
    countIf(ingested_at > time + INTERVAL 1 HOUR)                                             AS late_of_week
FROM events
WHERE ingested_at >= {week:DateTime64(3, 'UTC')}
    AND ({website_id:Int64} = 0 OR website_id = {website_id:Int64})
GROUP BY website_id, subject, subject_id, experiment_id, variation_id, goal_id
