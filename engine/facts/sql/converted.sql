WITH
    converted AS (  -- one row per visitor with goal events that count: number and amounts of these events, which have one place
        SELECT
            sum(toInt64(sign))                              AS n,
            intDiv(sum(sign * toInt64({{.Place}})), n)      AS of_place,
            {{- if .Period}}
            toUInt8(intDiv(sum(sign * toInt64({{.Period}})), n)) AS of_period,
            {{- end}}
            {{- if .Crossed}}
            intDiv(sum(sign * {{.Crossed}}), n)             AS of_crossing,
            {{- end}}
            sum(sign * value)                               AS total_value,
            sum(sign * profit)                              AS total_profit,
            sum(sign * extra_value)                         AS total_extra
            {{- if .Unknown}},
            sum(toInt64(sign * bitAnd(marks, 1)))           AS unknown
            {{- end}}
        FROM {{.Facts}}
        WHERE {{template "goals_where.sql" .}}
            AND variation != ''
        GROUP BY visitor_id
        HAVING n != 0
    )
-- one row per key: sums over these visitors
SELECT
    {{template "keys.sql" .}}toInt64(count())                                        AS converted_visitors,
    toInt128(sum(n))                                        AS goals_reached,
    toInt128(sum(n * n))                                    AS goals_reached_squares,
    {{- if .Unknown}}
    sum(unknown)                                            AS unknown_values,
    {{- end}}
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
GROUP BY {{range $i, $key := .Keys}}{{if $i}}, {{end}}{{.Name}}{{end}}
{{template "settings.sql" .}}
