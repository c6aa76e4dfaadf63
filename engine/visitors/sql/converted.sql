WITH
    converted AS (  -- one row per visitor with events that count: number and amounts of these events; and the markers
        SELECT
            visitor_id,
            if(segment = 255, 255, bitAnd(segment, 254))    AS of_segment,
            {{if .ByDimension}}{{.Dimension}}{{else}}toUInt16(0){{end}} AS dimension,
            sum(sign)                                       AS n,
            sum(sign * value)                               AS value,
            sum(sign * profit)                              AS profit,
            sum(sign * extra_value)                         AS extra_value
        FROM (
            SELECT *, if(segment != 255 AND bitAnd(segment, 1) = 1, -1, 1) AS sign
            FROM conversions
            WHERE bucket = {bucket:UInt16}
                AND generation = {generation:UInt64}
                {{- if .OneGoal}}
                AND goal_id IN (0, {goal_id:Int64})
                {{- end}}
                AND ({{.Committed}})
                AND ({{template "marker.sql"}} OR ({{.Goals}}) AND ({{.Filters}}){{.Window}})
        )
        GROUP BY visitor_id, of_segment{{if .ByDimension}}, dimension{{end}}
        HAVING n != 0
    )
-- one row per segment and dimension value: sums over its visitors; and one row for the markers
SELECT
    toInt64({{if .ByDimension}}toUInt32(of_segment + 512 * dimension){{else}}of_segment{{end}} AS key) AS of_key,
    toInt64(count()),
    toInt64(sum(n)),
    toInt64(sum(n * n)),
    sum(toInt128(value)), sum(toInt128(value) * value), toInt64(countIf(value != 0)), toInt64(countIf(value < 0)),
    sum(toInt128(value) * n),
    sum(toInt128(profit)), sum(toInt128(profit) * profit), toInt64(countIf(profit != 0)), toInt64(countIf(profit < 0)),
    sum(toInt128(extra_value)), sum(toInt128(extra_value) * extra_value), toInt64(countIf(extra_value != 0)), toInt64(countIf(extra_value < 0))
{{- if .Cap}},
    sum({{template "capped" pair "value" "profit"}}) AS capped_visitors,
    sum({{template "value_removed" pair "value" "profit"}}) AS value_removed,
    sum({{template "value_squares_removed" pair "value" "profit"}}) AS value_squares_removed,
    sum({{template "profit_squares_removed" pair "value" "profit"}}) AS profit_squares_removed,
    sum({{template "profit_nonzero_removed" pair "value" "profit"}}) AS profit_nonzero_removed,
    sum({{template "profit_negative_removed" pair "value" "profit"}}) AS profit_negative_removed
{{- end}}
FROM converted
GROUP BY key
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0
