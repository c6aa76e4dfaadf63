-- one row per dimension value, by visitors first exposed in the window, in descending order
SELECT
    toString({{.Dimension}})                                AS dimension,
    sum(toInt64(sign))                                      AS visitors
FROM {{.Facts}}
WHERE {{template "visitors_where.sql" .}}
    AND variation != '' AND NOT endsWith(variation, '!')
    {{- if .To}}
    AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64}
    {{- end}}
    {{- if .From}}
    AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
    {{- end}}
GROUP BY dimension
HAVING visitors > 0
ORDER BY visitors DESC, dimension
{{- if .Most}}
LIMIT {most:UInt32}
{{- end}}
{{template "settings.sql" .}}
