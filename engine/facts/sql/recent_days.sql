-- one row per variation: visitors first exposed in the recent days
SELECT
    variation,
    toInt64(sum(sign * sums[1]))                            AS visitors_recent
FROM {{.Facts}}
WHERE section = {days:UInt64}
    AND goal_id = 0
    AND first_day >= {recent_from:Date}
    AND first_day < {recent_to:Date}
    {{- template "first_view_where.sql" .}}
GROUP BY variation
{{template "settings.sql" .}}
