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
    AND first_time < toDateTime64({to:String}, 3, 'UTC')
{{- end}}
{{- if .From}}
    AND first_time >= toDateTime64({from:String}, 3, 'UTC')
{{- end}}
GROUP BY dimension
HAVING visitors > 0
ORDER BY visitors DESC, dimension
LIMIT {most:UInt32}
