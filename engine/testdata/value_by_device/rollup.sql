-- bucket               0
-- generation           1
-- cubes                [state all by first day device by first day]
-- cells                [device by first day]
-- goal_id              1
-- kinds                [view]
-- recent_from          2026-04-24
-- recent_to            2026-05-01
-- one row per cube, cell, kind of event: its sums; and one row for the cube state: the state of the generation
SELECT
    cube_name,
    toInt64(0) AS step,
    if(cube_name IN {cells:Array(String)}, device, '') AS dimension,
    variation_id,
    multi_exposed,
    event,
    toInt64(0) AS goal,
    sum(visitors),
    sum(visitors),
    sumIf(visitors, first_day >= {recent_from:Date32} AND first_day < {recent_to:Date32}),
    sum(events),
    sum(events_squares),
    sum(value),
    sum(value_times_goals),
    sum(profit),
    sum(extra_value),
    sum(signs),
    maxMap(state)
FROM rollups
WHERE bucket = {bucket:UInt16}
    AND generation = {generation:UInt64}
    AND (
        is_cell = 0
        OR is_cell = 1
            AND cube_name IN {cubes:Array(String)}
            AND (event IN {kinds:Array(String)} AND goal_id = 0 OR event = 'goal' AND goal_id = {goal_id:Int64})
            AND (true)
    )
GROUP BY cube_name, step, dimension, variation_id, multi_exposed, event, goal
