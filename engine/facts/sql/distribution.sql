-- one row per place and bin: the number of counted goal events in the bin; bucket is its lower bound
SELECT
    {{template "keys.sql" .}}toInt128(sum(toInt64(sign)))                            AS goals_reached
FROM {{.Facts}}
WHERE {{template "goals_where.sql" .}}
    {{- if .Unknown}}
    AND bitAnd(marks, 1) = 0
    {{- end}}
GROUP BY {{range $i, $key := .Keys}}{{if $i}}, {{end}}{{.Name}}{{end}}
{{template "settings.sql" .}}
