-- partition            1-1-1-0-1
-- facets               [state all by first day]
-- kinds                [view]
-- goal_id              2
-- recent_from          2026-04-24
-- recent_to            2026-05-01
-- one row per facet, cell and kind of event: the sums that settled has of it; and one, of the facet state, that says how far they go
SELECT
    facet,
    toInt64(0) AS bucket,
    '' AS dimension,
    variation_id,
    crossover,
    event,
    sum(visitors),
    sum(visitors),
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
            AND (true)
    )
GROUP BY facet, bucket, dimension, variation_id, crossover, event
