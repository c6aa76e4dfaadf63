-- one row per cell that is not cancelled
SELECT
    website_id, toUInt8(subject), subject_id, experiment_id, toUInt8(grain), goal_id, variation,
    toUnixTimestamp64Milli(first_time)                      AS first_ms,
    since_ms, sums,
    sum(toInt64(sign))                                      AS copies
FROM {{.Facts}}
WHERE {{.InGeneration}}
    AND {{.Where}}
GROUP BY website_id, subject, subject_id, experiment_id, grain, goal_id, variation, first_ms, since_ms, sums
HAVING copies != 0
