-- one row per visitor of the report: the first view, the events until the end of the window, and the goal events that count
SELECT
    visitor_id,
    any(variation)                                          AS of_variation,
    any(toUnixTimestamp64Milli(first_time))                 AS first_ms,
    any(concatWithSeparator('\0', {{.Attributes}}))         AS attributes,
    sumIf(views, grain = 'visitor')                         AS all_views,
    {{if .Widget}}sum(clicks), sum(submits), sum({{.Completions}}), sum({{.Conversions}}), sum(contacts){{else}}{{/* a campaign has none */}}toUInt64(0), toUInt64(0), toUInt64(0), toUInt64(0), toUInt64(0){{end}},
    countIf(grain = 'goal')                                 AS goals,
    {{if .Unknown}}countIf(bitAnd(marks, 1) = 1){{else}}toUInt64(0){{end}} AS unknown_values,
    sum(value)                                              AS total_value,
    sum(profit)                                             AS total_profit,
    sum(extra_value)                                        AS total_extra,
    total_value - {{if .Cap}}greatest(total_value - {cap:Int64}, 0){{else}}0{{end}} AS counted_value,
    total_profit - (total_value - counted_value)            AS counted_profit
FROM (
    SELECT *{{if .To}} REPLACE ({{template "counts.sql" .}}){{end}}
    FROM {{.Facts}} FINAL -- without rows that are cancelled
    WHERE variation IN {variations:Array(String)}
        AND (
            {{template "goals_where.sql" .}}
            OR {{template "visitors_where.sql" .}}
            {{- template "first_view_where.sql" .}}
        )
)
GROUP BY visitor_id
{{template "settings.sql" .}}, max_bytes_before_external_group_by = 268435456, max_bytes_ratio_before_external_group_by = 0{{/* other visitors wait on the disk */}}
