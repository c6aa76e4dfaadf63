{{if .Numbered}}WITH
    {{template "numbered.sql" .}}
{{end}}-- one row per {{if .Series}}bucket and {{end}}variation{{if .ByDimension}} and rank of the dimension value{{end}}{{if .ByPeriod}} and period{{end}}{{if .ByCrossing}} and crossing{{end}}: the sums over visitors that the counted goal events add
SELECT
    variation,
    {{.Bucket}}                                             AS bucket,
    {{.Rank}}                                               AS rank,
    {{if and .Numbered .ByPeriod}}of_period{{else}}{{.Period}}{{end}} AS period,
    {{if and .Numbered .ByCrossing}}of_crossing{{else}}{{.Crossed}}{{end}} AS crossed,
    toInt64(countIf(number = 1))                            AS converted_visitors,
    toInt64({{if .Numbered}}sum(copies){{else}}count(){{end}}) AS goals_reached,
    toInt64(sum(2 * toInt64(number) - 1))                   AS goals_reached_squares,
    {{template "amounts.sql" "value"}},
    sum(toInt128(value_before + value) * number - toInt128(value_before) * (number - 1)) AS value_times_goals,
    {{template "amounts.sql" "profit"}},
    {{template "amounts.sql" "extra_value"}}
{{- if .Cap}},
    sum({{template "capped" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "capped" pair "value_before" "profit_before"}}) AS capped_visitors,
    sum({{template "value_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "value_removed" pair "value_before" "profit_before"}}) AS value_removed,
    sum({{template "value_squares_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "value_squares_removed" pair "value_before" "profit_before"}}) AS value_squares_removed,
    sum({{template "profit_squares_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "profit_squares_removed" pair "value_before" "profit_before"}}) AS profit_squares_removed,
    sum({{template "profit_nonzero_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "profit_nonzero_removed" pair "value_before" "profit_before"}}) AS profit_nonzero_removed,
    sum({{template "profit_negative_removed" pair "(value_before + value)" "(profit_before + profit)"}} - {{template "profit_negative_removed" pair "value_before" "profit_before"}}) AS profit_negative_removed
{{- end}}
FROM {{if .Numbered}}numbered{{else}}{{.Facts}}
WHERE {{template "goals_where.sql" .}}{{end}}
GROUP BY variation{{if .Series}}, bucket{{end}}{{if .ByDimension}}, rank{{end}}{{if .ByPeriod}}, period{{end}}{{if .ByCrossing}}, crossed{{end}}
{{template "settings.sql" .}}
