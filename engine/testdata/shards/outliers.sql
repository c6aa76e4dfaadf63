-- one row: sums over all shards. All events of a visitor are on one shard, so no visitor is counted twice
SELECT
    sum(c.goals_reached)         AS goals_reached,
    sum(c.value)                 AS value,
    sum(c.value_squares)         AS value_squares
FROM cluster('lift', view(
WITH
    visitors AS (  -- one row per visitor with a view: the first view and the events that may count
        SELECT
            visitor_id,
            argMinIf(
                (time, variation_id, '', toBool(true)),
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
        FROM `lifthouse`.events_local
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

-- one row: sums of the counted goal values over all variations
SELECT
    sum(length(c.goals))                                                              AS goals_reached,
    sum(arraySum(goal -> goal.3, c.goals))                                            AS value,
    sum(arraySum(goal -> toInt256(goal.3) * goal.3, c.goals))                         AS value_squares
FROM counted AS c
WHERE NOT c.exposed_before
    AND (NOT c.multi_exposed OR {with_multi_exposed:Bool})
    AND c.variation_id IN {variation_ids:Array(Int64)}
)) AS c
