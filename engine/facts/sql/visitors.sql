-- one row per key: sums over its visitors
SELECT
    {{template "keys.sql" .}}sum(sign)                                               AS visitors,
    {{template "views.sql" .}}
{{- if .Widget}},
    sum(sign * clicks), sum(sign * submits), sum(sign * {{.Completions}}), sum(sign * {{.Conversions}}), sum(sign * contacts),
    sum(sign * ({{.Completions}} > 0))                        AS completed_visitors,
    sum(sign * ({{.Conversions}} > 0))                        AS conversion_visitors
{{- end}}
FROM {{if .To}}(
    -- one row per visitor without events after the window
    SELECT {{.Columns}}, views{{if .Widget}}, clicks, submits, completions, conversions, contacts{{end}}
    FROM {{.Facts}}
    WHERE {{template "visitors_where.sql" .}}
        AND toUnixTimestamp64Milli(first_time) + since_ms < {to_ms:Int64}
        {{- if .From}}
        AND toUnixTimestamp64Milli(first_time) + since_ms >= {from_ms:Int64}
        {{- end}}
    UNION ALL
    -- one row per other visitor first exposed before the window's end: counts up to this end
    SELECT {{.Columns}}, {{template "counts.sql" .}}
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
GROUP BY {{range $i, $key := .Keys}}{{if $i}}, {{end}}{{.Name}}{{end}}
{{template "settings.sql" .}}
