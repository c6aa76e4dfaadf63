-- one row per dimension value, by visitors first exposed in the window, in descending order
SELECT
    {{.Dimension}}                                          AS dimension,
    toInt64(sum(if(bitAnd(segment, 1) = 1, -1, 1)))         AS visitors
FROM exposures
WHERE bucket = {bucket:UInt16}
    AND generation = {generation:UInt64}
    AND ({{.Committed}})
    AND segment != 255
    AND ({{.Filters}})
{{- if .To}}
    AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64}
{{- end}}
{{- if .From}}
    AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
{{- end}}
GROUP BY dimension
HAVING visitors > 0
ORDER BY visitors DESC, dimension
LIMIT {most:UInt32}
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0
