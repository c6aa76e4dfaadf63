-- one row per variation: visitors first exposed in the recent days
SELECT
    variation,
    toInt64(count())                                        AS visitors_recent
FROM {{.Facts}}
WHERE section = {visitors:UInt64}
    AND first_day >= {recent_from:Date32}
    AND first_day < {recent_to:Date32}
GROUP BY variation
{{template "settings.sql" .}}
