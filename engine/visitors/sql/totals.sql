-- one row per converted visitor: total value; and one row for the markers
SELECT
    segment = 255           AS is_marker,
    toInt64(count())        AS markers,
    toInt64(sum(sign * value)) AS total
FROM (
    SELECT visitor_id, segment, value, if(segment != 255 AND bitAnd(segment, 1) = 1, -1, 1) AS sign
    FROM conversions
    WHERE bucket = {bucket:UInt16}
        AND generation = {generation:UInt64}
        {{- if .OneGoal}}
        AND goal_id IN (0, {goal_id:Int64})
        {{- end}}
        AND ({{.Committed}})
        AND (segment = 255 OR ({{.Goals}}) AND bitAnd(segment, 254) IN {segments:Array(UInt16)}{{.Window}})
)
GROUP BY is_marker, if(is_marker, 0, visitor_id)
HAVING is_marker OR sum(sign) != 0
