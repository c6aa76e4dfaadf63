-- one row per variation and goal{{if .Keys}} and bucket{{end}}: sums of the cells by day
SELECT
    variation, goal_id,
    {{template "keys.sql" .}}sumForEach(arrayMap(x -> sign * x, sums))               AS of_cell -- the extent has no meaning
FROM {{.Facts}}
WHERE section = {days:UInt64}
    AND goal_id IN {cell_goals:Array(Int64)}
    {{- if .From}}
    AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
    {{- end}}
    {{- if .To}}
    AND toUnixTimestamp64Milli(first_time) + since_ms < {to_ms:Int64}
    {{- end}}
GROUP BY variation, goal_id{{range .Keys}}, {{.Name}}{{end}}
{{template "settings.sql" .}}
