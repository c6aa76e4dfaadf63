-- {{.Of}}: sums over all shards. All events of a visitor are on one shard, so no visitor is counted twice
SELECT
{{- range .Keys}}
    c.{{.}} AS {{.}},
{{- end}}
{{- if .Recount}}
    groupArrayArray(c.recount)   AS recount,
{{- end}}
{{- if .Outliers}}
    sum(c.goals_reached)         AS goals_reached,
    sum(c.value)                 AS value,
    sum(c.value_squares)         AS value_squares
{{- else if .Totals}}
    groupArrayArray(c.totals)    AS totals
{{- else}}
{{- template "merged.sql" .}}
{{- end}}
FROM {{.Shards}} AS c
{{- if .Keys}}
GROUP BY {{.List}}
ORDER BY {{.List}}
{{- end}}
