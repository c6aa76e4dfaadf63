-- one row per dimension value, by visitors first exposed in the window, in descending order; with a conversion window,
-- visitors whose window has not ended do not count, because no slice shows them
SELECT
    toString({{.Dimension}})                                AS dimension,
    sum(toInt64(sign){{if .Mature}} * (toUnixTimestamp64Milli(first_time) <= {mature_ms:Int64}){{end}}) AS visitors
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
HAVING sum(toInt64(sign)) > 0
ORDER BY visitors DESC, dimension
{{- if .Most}}
LIMIT {most:UInt32}
{{- end}}
{{template "settings.sql" .}}
