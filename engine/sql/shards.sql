-- {{.Of}}: what the shards found, added up. A visitor's events lie on one shard: no one is there twice
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
{{- else}}
{{- template "merged.sql" .}}
{{- end}}
FROM {{.Shards}} AS c
{{- if .Keys}}
GROUP BY {{.List}}
ORDER BY {{.List}}
{{- end}}
