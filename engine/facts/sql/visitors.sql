-- one row per variation, exposed_before, rank of the dimension value, period of equal shares and crossing: sums over its visitors
SELECT
    variation,
    {{if .From}}toUnixTimestamp64Milli(first_time) < {from_ms:Int64}{{else}}false{{end}} AS exposed_before,
    {{.Rank}}                                               AS rank,
    {{.Period}}                                             AS period,
    {{.Crossed}}                                            AS crossed,
    toInt64(count())                                        AS visitors,
    toInt64(sum(first_day >= {recent_from:Date32} AND first_day < {recent_to:Date32})) AS visitors_recent,
    toInt64(sum(views))                                     AS all_views
{{- if .Widget}},
    toInt64(sum(clicks)), toInt64(sum(submits)), toInt64(sum(completions)), toInt64(sum(conversions)), toInt64(sum(contacts)),
    toInt64(countIf(completions > 0))                       AS completed_visitors,
    toInt64(countIf(conversions > 0))                       AS conversion_visitors
{{- end}}
FROM {{if .To}}(
    -- one row per visitor without events after the window
    SELECT *, first_day
    FROM {{.Facts}}
    WHERE {{template "visitors_where.sql" .}}
        AND toUnixTimestamp64Milli(first_time) + since_ms < {to_ms:Int64}
        {{- if .From}}
        AND toUnixTimestamp64Milli(first_time) + since_ms >= {from_ms:Int64}
        {{- end}}
    UNION ALL
    -- one row per other visitor first exposed before the window's end: counts up to this end
    SELECT * REPLACE (
{{- range $i, $count := .Counts}}{{if $i}},{{end}}
            {{$count}}
{{- end}}
        ), first_day
    FROM {{.Facts}}
    WHERE {{template "visitors_where.sql" .}}
        AND toUnixTimestamp64Milli(first_time) < {to_ms:Int64}
        AND toUnixTimestamp64Milli(first_time) + since_ms >= {to_ms:Int64}
        {{- if .From}}
        AND (toUnixTimestamp64Milli(first_time) >= {from_ms:Int64} OR arrayExists(ms -> toUnixTimestamp64Milli(first_time) + ms BETWEEN {from_ms:Int64} AND {to_ms:Int64} - 1, later_ms))
        {{- end}}
){{else}}{{.Facts}}
WHERE {{template "visitors_where.sql" .}}
    {{- if .From}}
    AND toUnixTimestamp64Milli(first_time) + since_ms >= {from_ms:Int64}
    {{- end}}{{end}}
GROUP BY variation{{if .From}}, exposed_before{{end}}{{if .ByDimension}}, rank{{end}}{{if .ByPeriod}}, period{{end}}{{if .ByCrossing}}, crossed{{end}}
{{template "settings.sql" .}}
