-- one row per place and bin: the counted goal events whose value is in the bin, which has the lower bound bucket
SELECT
    {{template "keys.sql" .}}sum(toInt64(sign))                                      AS goals_reached
FROM {{.Facts}}
WHERE {{template "goals_where.sql" .}}
GROUP BY {{range $i, $key := .Keys}}{{if $i}}, {{end}}{{.Name}}{{end}}
{{template "settings.sql" .}}
