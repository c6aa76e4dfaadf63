-- website_id           1
-- subject              campaign
-- subject_id           1
-- experiment_id        0
-- from                 1970-01-01 00:00:00 +0000 UTC
-- to                   2200-01-01 00:00:00 +0000 UTC
-- filter_device        [mobile]
-- filter_country       [ FR]
-- goal_id              1
-- shares_since         0
-- recent_from          1776988800000
-- recent_to            1777593600000
WITH
    visitors AS (  -- one row per visitor with a view: the first view and the events that may count
        SELECT
            visitor_id,
            argMinIf(
                (time, variation_id, '', toBool(device IN {filter_device:Array(String)} AND country IN {filter_country:Array(String)})),
                (time, variation_id, event_id),
                event = 'view'
            )                                                             AS first_view,
            minIf(variation_id, event = 'view') != maxIf(variation_id, event = 'view') AS multi_exposed,
            maxIf(time, time < toDateTime64({to:String}, 3, 'UTC'))       AS last_seen,
            countIf(event = 'view' AND time < toDateTime64({to:String}, 3, 'UTC')) AS views,
            CAST([], 'Array(DateTime64(3, \'UTC\'))')                                                AS view_times,
            groupArrayIf(
                (time, event, toInt128(value), toInt128(profit), toInt128(extra_value)),
                (event = 'goal' AND goal_id = {goal_id:Int64}) AND time < toDateTime64({to:String}, 3, 'UTC')
            )                                                             AS events
        FROM events
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
        GROUP BY visitor_id
        HAVING countIf(event = 'view') > 0
    ),
    counted AS (  -- one row per visitor in the report, or active in the window but first exposed before it: segment and sums
        SELECT
            visitor_id,
            first_view.1                                                 AS exposed_at,
            toUnixTimestamp64Milli(exposed_at)                           AS first_at,
            first_view.2                                                 AS variation_id,
            first_view.3                                                 AS dimension,
            exposed_at < toDateTime64({from:String}, 3, 'UTC')           AS exposed_before,
            multi_exposed,
            false                                                        AS recount,
            views,
            view_times,
            arrayFilter(event -> event.1 >= exposed_at, events)          AS reached,
            arrayFilter(event -> event.2 = 'goal', reached)              AS goals,
            arrayCount(event -> event.2 = 'click', reached)              AS clicks,
            arrayCount(event -> event.2 = 'submit', reached)             AS submits,
            arrayCount(event -> event.2 = 'completion', reached)         AS completions,
            arrayCount(event -> event.2 = 'conversion', reached)         AS conversions,
            arrayCount(event -> event.2 = 'contact', reached)            AS contacts,
            length(goals)                                                AS goals_reached,
            arraySum(goal -> goal.3, goals)                              AS value,
            arraySum(goal -> goal.4, goals)                              AS profit,
            arraySum(goal -> goal.5, goals)                              AS extra_value
        FROM visitors
        WHERE first_view.4
            AND exposed_at < toDateTime64({to:String}, 3, 'UTC')
            AND last_seen >= toDateTime64({from:String}, 3, 'UTC')
    )
,
    cells AS (  -- one row per variation, dimension value and segment
        SELECT
            c.variation_id                                     AS variation_id,
            c.dimension                                        AS dimension,
            c.exposed_before                                          AS exposed_before,
            c.multi_exposed                                        AS multi_exposed,
            countIf(NOT c.recount)                             AS visitors,
            countIf(c.first_at >= {shares_since:Int64})      AS visitors_since_shares,
            countIf(c.first_at >= {recent_from:Int64} AND c.first_at < {recent_to:Int64}) AS visitors_recent,
            sum(c.views)                                       AS views,
            countIf(c.goals_reached > 0)                       AS converted_visitors,
            sum(c.goals_reached)                               AS goals_reached,
            sum(c.goals_reached * c.goals_reached)             AS goals_reached_squares,
            sum(toInt128(c.value))                             AS value,
            sum(toInt256(c.value) * c.value)                   AS value_squares,
            countIf(c.value != 0)                              AS value_nonzero,
            countIf(c.value < 0)                               AS value_negative,
            sum(toInt128(c.value) * toInt128(c.goals_reached)) AS value_times_goals,
            sum(toInt128(c.profit))                            AS profit,
            sum(toInt256(c.profit) * c.profit)                 AS profit_squares,
            countIf(c.profit != 0)                             AS profit_nonzero,
            countIf(c.profit < 0)                              AS profit_negative,
            sum(toInt128(c.extra_value))                       AS extra_value,
            sum(toInt256(c.extra_value) * c.extra_value)       AS extra_value_squares,
            countIf(c.extra_value != 0)                        AS extra_value_nonzero,
            countIf(c.extra_value < 0)                         AS extra_value_negative
        FROM counted AS c
        GROUP BY variation_id, dimension, exposed_before, multi_exposed
    )
SELECT *
FROM cells
ORDER BY variation_id, dimension, exposed_before, multi_exposed
