{{if .Numbered}}WITH
    {{template "numbered.sql" .}}
{{end}}-- one row per key: the sums over visitors that the counted goal events add
SELECT
    {{template "keys.sql" .}}sumIf(sign, number = 1)                                 AS converted_visitors,
    toInt128(sum({{if .Numbered}}copies{{else}}sign{{end}})) AS goals_reached,
    toInt128(sum(sign * (2 * number - 1)))                  AS goals_reached_squares
{{- if .Unknown}},
    sum(toInt64(sign * bitAnd(marks, 1)))                   AS unknown_values
{{- end}}
{{- range $i, $amount := .Amounts}}{{if .Column}},
    {{template "amounts.sql" .}}
{{- if not $i}},
    toInt128(sum({{.Type}}(sign * value) * number + sign * value_before)) AS value_times_goals
{{- end}}{{end}}{{end}}
{{- if .Cap}},
    sum(sign * ({{template "capped" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "capped" pair "value_before" "profit_before"}})) AS capped_visitors,
    sum(sign * ({{template "value_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "value_removed" pair "value_before" "profit_before"}})) AS value_removed,
    sum(sign * ({{template "value_squares_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "value_squares_removed" pair "value_before" "profit_before"}})) AS value_squares_removed,
    sum(sign * ({{template "profit_squares_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "profit_squares_removed" pair "value_before" "profit_before"}})) AS profit_squares_removed,
    sum(sign * ({{template "profit_nonzero_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "profit_nonzero_removed" pair "value_before" "profit_before"}})) AS profit_nonzero_removed,
    sum(sign * ({{template "profit_negative_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "profit_negative_removed" pair "value_before" "profit_before"}})) AS profit_negative_removed
{{- end}}
{{- if .ByAge}},
    sum(toInt128(sign * toInt64(number = 1)) * ({{if .Numbered}}at_ms - first_ms{{else}}since_ms{{end}})) AS first_age,
    sum(toInt128(sign * toInt64(number = 1)) * ({{if .Numbered}}at_ms - first_ms{{else}}since_ms{{end}}) * ({{if .Numbered}}at_ms - first_ms{{else}}since_ms{{end}})) AS first_age_squares
{{- end}}
{{- if .Joint}},
    {{template "views.sql" .}}
{{- end}}
FROM {{if .Numbered}}numbered{{else}}{{.Facts}}
WHERE {{template "goals_where.sql" .}}{{end}}
GROUP BY {{range $i, $key := .Keys}}{{if $i}}, {{end}}{{.Name}}{{end}}
{{template "settings.sql" .}}
