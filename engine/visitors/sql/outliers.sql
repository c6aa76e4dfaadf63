-- one row: number, sum and sum of squares of the values of all counted events of the goal; and the number of markers
SELECT
    toInt64(sumIf(sign, segment != 255)),
    sumIf(toInt128(sign) * value, segment != 255),
    sumIf(toInt128(sign) * value * value, segment != 255),
    toInt64(countIf(segment = 255))
FROM (
    SELECT segment, value, if(bitAnd(segment, 1) = 1, -1, 1) AS sign
    FROM conversions
    WHERE bucket = {bucket:UInt16}
        AND generation = {generation:UInt64}
        {{- if .OneGoal}}
        AND goal_id IN (0, {goal_id:Int64})
        {{- end}}
        AND ({{.Committed}})
        AND ({{template "marker.sql"}} OR ({{.Goals}}) AND ({{.Filters}}) AND bitAnd(segment, 254) IN {segments:Array(UInt16)}{{.Window}})
)
