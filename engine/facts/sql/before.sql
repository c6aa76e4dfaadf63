-- one row per variation: visitors who were active in the window, but first exposed before it
SELECT
    variation,
    toInt64(sum(sign * sums[1]))                            AS visitors
FROM {{.Facts}}
WHERE section = {days:UInt64}
    AND goal_id = -1 -- returns
    AND toUnixTimestamp64Milli(first_time) < {from_ms:Int64}
    AND toUnixTimestamp64Milli(first_time) + since_ms >= {from_ms:Int64}
    {{- if .To}}
    AND toUnixTimestamp64Milli(first_time) + since_ms < {to_ms:Int64}
    {{- end}}
GROUP BY variation
{{template "settings.sql" .}}
