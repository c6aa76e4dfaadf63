live AS (  -- one row per counted event, unless another row cancels it; and one for the markers
        SELECT
            visitor_id,
            if(segment = 255, 255, bitAnd(segment, 254))    AS of_segment,
            goal_id,
            toUnixTimestamp64Milli(first_time) + since_ms   AS at_ms,
            number                                          AS of_goal,
            value,
            profit,
            extra_value,
            sum(if(segment != 255 AND bitAnd(segment, 1) = 1, -1, 1)) AS copies
        FROM conversions
        WHERE bucket = {bucket:UInt16}
            AND generation = {generation:UInt64}
            {{- if .OneGoal}}
            AND goal_id IN (0, {goal_id:Int64})
            {{- end}}
            AND ({{.Committed}})
            AND ({{template "marker.sql"}} OR ({{.Goals}}) AND ({{.Filters}}){{.Window}})
        GROUP BY visitor_id, of_segment, goal_id, at_ms, of_goal, value, profit, extra_value
        HAVING copies != 0
    ),
    numbered AS (  -- the same rows: number of the event among all counted events of the visitor, and sums over the earlier ones
        SELECT
            of_segment                                      AS segment,
            at_ms,
            copies,
            row_number() OVER of_visitor                    AS number,
            value,
            profit,
            extra_value,
            sum(value) OVER of_visitor - value              AS value_before,
            sum(profit) OVER of_visitor - profit            AS profit_before,
            sum(extra_value) OVER of_visitor - extra_value  AS extra_value_before
        FROM live
        WINDOW of_visitor AS (PARTITION BY visitor_id ORDER BY at_ms, goal_id, of_goal ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    )