-- website_id           1
-- subject              campaign
-- subject_id           1
-- experiment_id        0
-- generation           1
-- facets               [state all by first day]
-- kinds                [view]
-- goal_id              2
-- recent_from          2026-04-24 00:00:00 +0000 UTC
-- recent_to            2026-05-01 00:00:00 +0000 UTC
-- one row per facet, cell and kind of event: the sums that settled has of it; and one, of the facet state, that says how far they go
SELECT
    facet,
    toInt64(0) AS bucket,
    '' AS dimension,
    variation_id,
    crossover,
    event,
    sum(s.visitors)             AS visitors,
    sum(s.since_shares)         AS visitors_since_shares,
    sumIf(s.visitors, first_day >= toDate32({recent_from:DateTime64(3, 'UTC')}) AND first_day < toDate32({recent_to:DateTime64(3, 'UTC')})) AS visitors_recent,
    sum(s.events)               AS events,
    sum(s.events_squares)       AS events_squares,
    sum(s.value)                AS value,
    sum(s.value_squares)        AS value_squares,
    sum(s.value_nonzero)        AS value_nonzero,
    sum(s.value_negative)       AS value_negative,
    sum(s.value_times_goals)    AS value_times_goals,
    sum(s.profit)               AS profit,
    sum(s.profit_squares)       AS profit_squares,
    sum(s.profit_nonzero)       AS profit_nonzero,
    sum(s.profit_negative)      AS profit_negative,
    sum(s.extra_value)          AS extra_value,
    sum(s.extra_value_squares)  AS extra_value_squares,
    sum(s.extra_value_nonzero)  AS extra_value_nonzero,
    sum(s.extra_value_negative) AS extra_value_negative,
    max(s.through)              AS through,
    max(s.newest)               AS newest
FROM settled AS s
WHERE website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}
    AND generation = {generation:UInt64}
    AND facet IN {facets:Array(String)}
    AND (
        facet = 'state'
        OR (event IN {kinds:Array(String)} AND goal_id = 0 OR event = 'goal' AND goal_id = {goal_id:Int64})
            AND (true)
    )
GROUP BY facet, bucket, dimension, variation_id, crossover, event
HAVING events != 0 OR facet = 'state'
