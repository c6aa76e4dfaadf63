{{if .Numbered}}WITH
    {{template "numbered.sql" .}}
{{end}}-- one row per {{if .SeveralGoals}}goal and {{end}}place{{if .Series}} and bucket{{end}}{{if .ByPeriod}} and period{{end}}{{if .ByCrossing}} and crossing{{end}}: the sums over visitors that the counted goal events add
SELECT
    {{if .SeveralGoals}}goal_id{{else}}toInt64(0){{end}}    AS goal,
    toUInt32({{if .Numbered}}of_place{{else}}{{.Place}}{{end}}) AS place,
    {{.Bucket}}                                             AS bucket,
    {{if and .Numbered .ByPeriod}}of_period{{else}}{{.Period}}{{end}} AS period,
    {{if and .Numbered .ByCrossing}}of_crossing{{else}}{{.Crossed}}{{end}} AS crossed,
    sum(sign * toInt64(number = 1))                         AS converted_visitors,
    sum({{if .Numbered}}copies{{else}}toInt64(sign){{end}}) AS goals_reached,
    sum(sign * (2 * toInt64(number) - 1))                   AS goals_reached_squares,
    {{template "amounts.sql" (index .Amounts 0)}},
    {{with index .Amounts 0}}{{if .Column}}toInt128(sum({{.Type}}(sign * value) * number + sign * value_before)){{else}}toInt128(0){{end}}{{end}} AS value_times_goals,
    {{template "amounts.sql" (index .Amounts 1)}},
    {{template "amounts.sql" (index .Amounts 2)}}
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
FROM {{if .Numbered}}numbered{{else}}{{.Facts}}
WHERE {{template "goals_where.sql" .}}{{end}}
GROUP BY {{if .SeveralGoals}}goal, {{end}}{{if or .ByPlace .Numbered}}place{{else}}variation{{end}}{{if .Series}}, bucket{{end}}{{if .ByPeriod}}, period{{end}}{{if .ByCrossing}}, crossed{{end}}
{{template "settings.sql" .}}
