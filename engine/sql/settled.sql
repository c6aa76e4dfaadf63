-- one row per facet, cell and kind of event: the sums that settled has of it; and one, of the facet state, that says how far they go
SELECT
    facet,
    {{if .Steps}}if(facet = {steps:String}, intDiv(toInt64(toInt32(day)) * 86400000 + {shift:Int64}, {width:Int64}), 0){{else}}toInt64(0){{end}} AS bucket,
    {{if .Dimension}}if(facet IN {cells:Array(String)}, {{.Dimension}}, ''){{else}}''{{end}} AS dimension,
    variation_id,
    crossover,
    event,
    sum(visitors),
    {{if .Shares}}sum(since_shares){{else}}sum(visitors){{end}},
    sumIf(visitors, first_day >= {recent_from:Date32} AND first_day < {recent_to:Date32}),
    sum(events),
    sum(events_squares),
    sum(value),
    sum(value_times_goals),
    sum(profit),
    sum(extra_value),
    sum(signs)
FROM settled
WHERE _partition_id = {partition:String}
    AND facet IN {facets:Array(String)}
    AND (
        facet = 'state'
        OR (event IN {kinds:Array(String)} AND goal_id = 0 OR event = 'goal' AND goal_id = {goal_id:Int64})
            AND ({{.Filters}})
{{- if .Top}}
            AND (facet NOT IN {cells:Array(String)} OR {{.Dimension}} IN {top:Array(String)})
{{- end}}
{{- if .Window}}
            AND day < {to:Date32}
            AND (event = 'seen') = (first_day < {from:Date32})
            AND (event != 'seen' OR day >= {from:Date32})
{{- end}}
    )
GROUP BY facet, bucket, dimension, variation_id, crossover, event
