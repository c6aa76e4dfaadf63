live AS (  -- one row per counted goal event that is not cancelled
        SELECT
            visitor_id,
            toUInt32({{.Place}})                            AS of_place,
            goal_id,
            toUnixTimestamp64Milli(first_time)              AS first_ms,
            first_ms + since_ms                             AS at_ms,
            number                                          AS of_goal,
            {{if .Period}}{{.Period}}{{else}}0{{end}}              AS of_period,
            {{if .Crossed}}{{.Crossed}}{{else}}0{{end}}            AS of_crossing,
            value, profit, extra_value{{if .Unknown}}, marks{{end}},
            sum(toInt64(sign))                              AS copies
        FROM {{.Facts}}
        WHERE {{template "goals_where.sql" .}}
            AND variation != ''
        GROUP BY visitor_id, of_place, goal_id, first_ms, at_ms, of_goal, of_period, of_crossing, value, profit, extra_value{{if .Unknown}}, marks{{end}}
        HAVING copies != 0
    ),
    numbered AS (  -- the same rows, with the event's number among all counted events of the visitor, and sums over the earlier events
        SELECT
            of_place,
            toInt8(1)                                       AS sign,
            first_ms, at_ms, of_period, of_crossing, copies,
            row_number() OVER of_visitor                    AS number,
            value, profit, extra_value{{if .Unknown}}, marks{{end}},
            sum(value) OVER of_visitor - value              AS value_before,
            sum(profit) OVER of_visitor - profit            AS profit_before,
            sum(extra_value) OVER of_visitor - extra_value  AS extra_value_before
        FROM live
        WINDOW of_visitor AS (PARTITION BY visitor_id ORDER BY at_ms, goal_id, of_goal ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    )
