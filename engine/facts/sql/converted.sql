WITH
    converted AS (  -- one row per visitor with goal events that count: number and amounts of these events
        SELECT
            visitor_id,
            trimRight(variation, '-')                       AS of_variation,
            {{- if .ByDimension}}
            {{.Rank}}                                       AS of_rank,
            {{- end}}
            {{- if .ByPeriod}}
            {{.Period}}                                     AS of_period,
            {{- end}}
            {{- if .ByCrossing}}
            {{.Crossed}}                                    AS of_crossing,
            {{- end}}
            sum(toInt64(sign))                              AS n,
            sum(sign * value)                               AS total_value,
            sum(sign * profit)                              AS total_profit,
            sum(sign * extra_value)                         AS total_extra
        FROM {{.Facts}}
        WHERE {{template "goals_where.sql" .}}
        GROUP BY visitor_id, of_variation{{if .ByDimension}}, of_rank{{end}}{{if .ByPeriod}}, of_period{{end}}{{if .ByCrossing}}, of_crossing{{end}}
        HAVING n != 0
    )
-- one row per variation{{if .ByDimension}} and rank of the dimension value{{end}}{{if .ByPeriod}} and period{{end}}{{if .ByCrossing}} and crossing{{end}}: sums over these visitors
SELECT
    of_variation                                            AS variation,
    toInt64(0)                                              AS bucket,
    {{if .ByDimension}}of_rank{{else}}toUInt16(0){{end}}   AS rank,
    {{if .ByPeriod}}of_period{{else}}toUInt8(0){{end}}     AS period,
    {{if .ByCrossing}}of_crossing{{else}}toInt64(0){{end}} AS crossed,
    toInt64(count())                                        AS converted_visitors,
    toInt64(sum(n))                                         AS goals_reached,
    toInt64(sum(n * n))                                     AS goals_reached_squares,
    sum(toInt128(total_value)), sum(toInt128(total_value) * total_value), toInt64(countIf(total_value != 0)), toInt64(countIf(total_value < 0)),
    sum(toInt128(total_value) * n),
    sum(toInt128(total_profit)), sum(toInt128(total_profit) * total_profit), toInt64(countIf(total_profit != 0)), toInt64(countIf(total_profit < 0)),
    sum(toInt128(total_extra)), sum(toInt128(total_extra) * total_extra), toInt64(countIf(total_extra != 0)), toInt64(countIf(total_extra < 0))
{{- if .Cap}},
    sum({{template "capped" pair "total_value" "total_profit"}}) AS capped_visitors,
    sum({{template "value_removed" pair "total_value" "total_profit"}}) AS value_removed,
    sum({{template "value_squares_removed" pair "total_value" "total_profit"}}) AS value_squares_removed,
    sum({{template "profit_squares_removed" pair "total_value" "total_profit"}}) AS profit_squares_removed,
    sum({{template "profit_nonzero_removed" pair "total_value" "total_profit"}}) AS profit_nonzero_removed,
    sum({{template "profit_negative_removed" pair "total_value" "total_profit"}}) AS profit_negative_removed
{{- end}}
FROM converted
GROUP BY of_variation{{if .ByDimension}}, of_rank{{end}}{{if .ByPeriod}}, of_period{{end}}{{if .ByCrossing}}, of_crossing{{end}}
{{template "settings.sql" .}}
