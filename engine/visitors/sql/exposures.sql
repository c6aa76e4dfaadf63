-- one row per segment, and dimension value: sums over its visitors; and one row for the markers
SELECT
    segment,
    {{.Dimension}}                                          AS dimension,
    {{if .From}}first_time < toDateTime64({from:String}, 3, 'UTC'){{else}}toUInt8(0){{end}} AS exposed_before,
    count()                                                 AS visitors,
    {{if .Shares}}countIf(first_time >= fromUnixTimestamp64Milli({shares_since:Int64}, 'UTC')){{else}}count(){{end}} AS visitors_since_shares,
    countIf(first_day >= {recent_from:Date32} AND first_day < {recent_to:Date32}) AS visitors_recent,
    {{.Views}}                                              AS all_views
{{- if .Widget}},
    {{range $i, $kind := .Actions}}{{if $i}}
    {{end}}{{$kind}},{{end}}
    {{.Completed}}                                          AS completed_visitors,
    {{.Conversion}}                                         AS conversion_visitors
{{- end}}
FROM exposures
WHERE bucket = {bucket:UInt16}
    AND generation = {generation:UInt64}
    AND ({{.Committed}})
    AND (segment = 255 OR ({{.Filters}}){{if .To}} AND first_time < toDateTime64({to:String}, 3, 'UTC'){{end}}{{if .From}} AND {{.Seen}}{{end}})
GROUP BY segment{{if .ByDimension}}, dimension{{end}}{{if .From}}, exposed_before{{end}}
