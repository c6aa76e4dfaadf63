WITH
    converted AS (  -- one row per visitor with events that count: total value; and one row for the markers
        SELECT
            segment = 255                                   AS is_marker,
            count()                                         AS rows,
            toInt64(sum(if(bitAnd(segment, 1) = 1, -value, value))) AS total
        FROM conversions
        WHERE bucket = {bucket:UInt16}
            AND generation = {generation:UInt64}
            {{- if .OneGoal}}
            AND goal_id IN (0, {goal_id:Int64})
            {{- end}}
            AND ({{.Committed}})
            AND ({{template "marker.sql"}} OR ({{.Goals}}) AND bitAnd(segment, 254) IN {segments:Array(UInt16)}{{.Window}})
        GROUP BY is_marker, if(is_marker, 0, visitor_id)
        HAVING is_marker OR sum(if(bitAnd(segment, 1) = 1, -1, 1)) != 0
    )
-- one row: the number of markers, and the total values of the converted visitors of all variations
SELECT
    toInt64(sumIf(rows, is_marker))     AS markers,
    groupArrayIf(total, NOT is_marker)  AS totals
FROM converted
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0
