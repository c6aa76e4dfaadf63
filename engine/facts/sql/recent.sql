-- one row per variation: visitors first exposed since the current shares took effect, and in the recent days
SELECT
    variation,
    {{if .Shares}}toInt64(countIf(toUnixTimestamp64Milli(first_time) >= {shares_since:Int64})){{else}}toInt64(0){{end}} AS visitors_since_shares,
    {{if .Shares}}toInt64(countIf(first_day >= {recent_from:Date32} AND first_day < {recent_to:Date32})){{else}}toInt64(count()){{end}} AS visitors_recent
FROM {{.Facts}}
WHERE section = {visitors:UInt64}
    {{- if not .Shares}}
    AND first_day >= {recent_from:Date32}
    AND first_day < {recent_to:Date32}
    {{- end}}
GROUP BY variation
{{template "settings.sql" .}}
