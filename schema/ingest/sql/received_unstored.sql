-- One row per website, verdict and cause: how many rows and lines were not stored since an hour, a day and a week ago.
SELECT
    website_id,
    verdict,
    cause,
    sumIf(lines, minute >= {hour:DateTime64(3, 'UTC')}) AS of_hour,
    sumIf(lines, minute >= {day:DateTime64(3, 'UTC')})  AS of_day,
    sum(lines)                                          AS of_week
FROM unstored
WHERE minute >= {week:DateTime64(3, 'UTC')}
    AND ({website_id:Int64} = 0 OR website_id IN (0, {website_id:Int64}))
GROUP BY website_id, verdict, cause
