-- one row per variation: visitors who were active in the window, but first exposed before it
SELECT
    variation,
    toInt64(count())                                        AS visitors
FROM {{.Facts}}
WHERE {{template "visitors_where.sql" .}}
    AND toUnixTimestamp64Milli(first_time) < {from_ms:Int64}
    AND toUnixTimestamp64Milli(first_time) + since_ms >= {from_ms:Int64}
    {{- if .To}}
    AND (toUnixTimestamp64Milli(first_time) + since_ms < {to_ms:Int64}
        OR arrayExists(ms -> toUnixTimestamp64Milli(first_time) + ms BETWEEN {from_ms:Int64} AND {to_ms:Int64} - 1, later_ms))
    {{- end}}
GROUP BY variation
{{template "settings.sql" .}}
