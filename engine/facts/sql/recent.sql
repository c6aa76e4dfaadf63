-- one row per variation: visitors first exposed in the recent days
SELECT
    variation,
    sum(toInt64(sign))                                      AS visitors_recent
FROM {{.Facts}}
WHERE section = {visitors:UInt64}
    AND first_day >= {recent_from:Date}
    AND first_day < {recent_to:Date}
GROUP BY variation
{{template "settings.sql" .}}
