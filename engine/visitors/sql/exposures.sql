-- one row per segment, whether the visitor was exposed before the window, and dimension value: sums over its visitors; and
-- one row for the markers
SELECT
    toInt64({{.Key}} AS key)                                AS of_key,
    count()                                                 AS visitors,
    {{if .Shares}}countIf(first_time >= fromUnixTimestamp64Milli({shares_since:Int64}, 'UTC')){{else}}count(){{end}} AS visitors_since_shares,
    sum(first_day >= {recent_from:Date32} AND first_day < {recent_to:Date32}) AS visitors_recent,
    sum(views)                                              AS all_views
{{- if .Widget}},
    sum(clicks), sum(submits), sum(completions), sum(conversions), sum(contacts),
    countIf(completions > 0)                                AS completed_visitors,
    countIf(conversions > 0)                                AS conversion_visitors
{{- end}}
FROM {{if .To}}(
    -- one row per visitor without events after the window
    SELECT *, first_day
    FROM exposures
    WHERE bucket = {bucket:UInt16}
        AND generation = {generation:UInt64}
        AND ({{.Committed}})
        AND ({{template "marker.sql"}} OR toUnixTimestamp64Milli(first_time) + last_ms < {to_ms:Int64})
        {{- if .From}}
        AND ({{template "marker.sql"}} OR toUnixTimestamp64Milli(first_time) + last_ms >= {from_ms:Int64})
        {{- end}}
        AND ({{template "marker.sql"}} OR ({{.Filters}}))
    UNION ALL
    -- one row per other visitor exposed before the end of the window: counts until the end
    SELECT * REPLACE (
{{- range $i, $count := .Counts}}{{if $i}},{{end}}
            {{$count}}
{{- end}}
        ), first_day
    FROM exposures
    WHERE bucket = {bucket:UInt16}
        AND generation = {generation:UInt64}
        AND ({{.Committed}})
        AND ({{template "marker.sql"}} OR toUnixTimestamp64Milli(first_time) < {to_ms:Int64} AND toUnixTimestamp64Milli(first_time) + last_ms >= {to_ms:Int64})
        AND ({{template "marker.sql"}} OR ({{.Filters}}))
        {{- if .From}}
        AND ({{template "marker.sql"}} OR toUnixTimestamp64Milli(first_time) >= {from_ms:Int64} OR arrayExists(hour -> {{.Within}}, later_hours))
        {{- end}}
){{else}}exposures
WHERE bucket = {bucket:UInt16}
    AND generation = {generation:UInt64}
    AND ({{.Committed}})
    AND ({{template "marker.sql"}} OR ({{.Filters}}))
    {{- if .From}}
    AND ({{template "marker.sql"}} OR toUnixTimestamp64Milli(first_time) + last_ms >= {from_ms:Int64})
    {{- end}}{{end}}
GROUP BY key
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0 -- compiling takes longer than most of these statements
