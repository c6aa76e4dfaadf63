-- one row per cube, cell, kind of event{{if .ByGoal}} and goal{{end}}: its sums; and one row for the cube state: the state of the generation
SELECT
    cube_name,
    {{if .Steps}}if(cube_name = {steps:String}, intDiv(toInt64(toInt32(day)) * 86400000 + {shift:Int64}, {width:Int64}), 0){{else}}toInt64(0){{end}} AS step,
    {{if .Dimension}}if(cube_name IN {cells:Array(String)}, {{.Dimension}}, ''){{else}}''{{end}} AS dimension,
    variation_id,
    multi_exposed,
    event,
    {{if .ByGoal}}if(event = 'goal', goal_id, -1){{else}}toInt64(0){{end}} AS goal,
    sum(visitors),
    {{if .Shares}}sum(since_shares){{else}}sum(visitors){{end}},
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
            AND (event IN {kinds:Array(String)} AND goal_id = 0 OR event = 'goal' AND {{if .ByGoal}}goal_id IN {goals:Array(Int64)}{{else}}goal_id = {goal_id:Int64}{{end}})
            AND ({{.Filters}})
{{- if .Top}}
            AND (cube_name NOT IN {cells:Array(String)} OR {{.Dimension}} IN {top:Array(String)})
{{- end}}
{{- if .Window}}
            AND day < {to:Date32}
            AND (event = 'active') = (first_day < {from:Date32})
            AND (event != 'active' OR day >= {from:Date32})
{{- end}}
    )
GROUP BY cube_name, step, dimension, variation_id, multi_exposed, event, goal
