-- one row per bucket, variation and segment: sums over all shards. All events of a visitor are on one shard, so no visitor is counted twice
SELECT
    c.bucket AS bucket,
    c.variation_id AS variation_id,
    c.dimension AS dimension,
    c.exposed_before AS exposed_before,
    c.multi_exposed AS multi_exposed,
    sum(c.visitors)              AS visitors,
    sum(c.visitors_since_shares) AS visitors_since_shares,
    sum(c.visitors_recent)       AS visitors_recent,
    sum(c.views)                 AS views,
    sum(c.converted_visitors)    AS converted_visitors,
    sum(c.goals_reached)         AS goals_reached,
    sum(c.goals_reached_squares) AS goals_reached_squares,
    sum(c.value)                 AS value,
    sum(c.value_squares)         AS value_squares,
    sum(c.value_nonzero)         AS value_nonzero,
    sum(c.value_negative)        AS value_negative,
    sum(c.value_times_goals)     AS value_times_goals,
    sum(c.profit)                AS profit,
    sum(c.profit_squares)        AS profit_squares,
    sum(c.profit_nonzero)        AS profit_nonzero,
    sum(c.profit_negative)       AS profit_negative,
    sum(c.extra_value)           AS extra_value,
    sum(c.extra_value_squares)   AS extra_value_squares,
    sum(c.extra_value_nonzero)   AS extra_value_nonzero,
    sum(c.extra_value_negative)  AS extra_value_negative

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
            groupArrayIf(time, event = 'view' AND time < toDateTime64({to:String}, 3, 'UTC'))                                                AS view_times,
            groupArrayIf(
                (time, event, toInt128(value), toInt128(profit), toInt128(extra_value)),
                (event = 'goal') AND time < toDateTime64({to:String}, 3, 'UTC')
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
,
    steps AS (  -- one row per visitor in the report and bucket with a counted event
        SELECT
            variation_id,
            dimension,
            multi_exposed,
            intDiv(toUnixTimestamp64Milli(exposed_at) + {shift:Int64}, {width:Int64})                              AS first_bucket,
            arrayMap(at -> intDiv(toUnixTimestamp64Milli(at) + {shift:Int64}, {width:Int64}), view_times)           AS view_buckets,
            arrayMap(e -> (intDiv(toUnixTimestamp64Milli(e.1) + {shift:Int64}, {width:Int64}), e.2, e.3, e.4, e.5), reached) AS bucketed,
            arrayJoin(arrayDistinct(arrayConcat(view_buckets, bucketed.1)))                                        AS bucket,
            countEqual(view_buckets, bucket)                                                                       AS views,
            arrayFilter(e -> e.1 = bucket, bucketed)                                                               AS within,
            arrayFilter(e -> e.1 < bucket AND e.2 = 'goal', bucketed)                                              AS goals_before,
            arrayFilter(e -> e.1 <= bucket AND e.2 = 'goal', bucketed)                                             AS goals_after,
            toInt64(length(goals_before))                                                                          AS goals_reached_before,
            toInt64(length(goals_after))                                                                           AS goals_reached_after,
            arraySum(e -> e.3, goals_before)                                                                       AS value_before,
            arraySum(e -> e.3, goals_after)                                                                        AS value_after,
            arraySum(e -> e.4, goals_before)                                                                       AS profit_before,
            arraySum(e -> e.4, goals_after)                                                                        AS profit_after,
            arraySum(e -> e.5, goals_before)                                                                       AS extra_before,
            arraySum(e -> e.5, goals_after)                                                                        AS extra_after,
            arrayExists(e -> e.1 < bucket AND e.2 = 'completion', bucketed)                                        AS completed_before,
            arrayExists(e -> e.1 < bucket AND e.2 = 'conversion', bucketed)                                        AS conversion_before
        FROM counted
        WHERE NOT exposed_before
    )
-- one row per bucket, variation and segment: what the bucket adds to the cumulative sums
SELECT
    s.bucket                                                                              AS bucket,
    s.variation_id                                                                        AS variation_id,
    ''                                                                                    AS dimension,
    toUInt8(0)                                                                            AS exposed_before,
    s.multi_exposed                                                                           AS multi_exposed,
    toInt64(countIf(s.bucket = s.first_bucket))                                           AS visitors,
    toInt64(0)                                                                            AS visitors_since_shares,
    toInt64(0)                                                                            AS visitors_recent,
    toInt64(sum(s.views))                                                                 AS views,
    toInt64(countIf(s.goals_reached_before = 0 AND s.goals_reached_after > 0))            AS converted_visitors,
    sum(s.goals_reached_after - s.goals_reached_before)                                   AS goals_reached,
    sum(s.goals_reached_after * s.goals_reached_after - s.goals_reached_before * s.goals_reached_before) AS goals_reached_squares,
    sum(s.value_after - s.value_before)                                                   AS value,
    sum(toInt256(s.value_after) * s.value_after - toInt256(s.value_before) * s.value_before) AS value_squares,
    sum(toInt64(s.value_after != 0) - toInt64(s.value_before != 0))                       AS value_nonzero,
    sum(toInt64(s.value_after < 0) - toInt64(s.value_before < 0))                         AS value_negative,
    sum(s.value_after * s.goals_reached_after - s.value_before * s.goals_reached_before)  AS value_times_goals,
    sum(s.profit_after - s.profit_before)                                                 AS profit,
    sum(toInt256(s.profit_after) * s.profit_after - toInt256(s.profit_before) * s.profit_before) AS profit_squares,
    sum(toInt64(s.profit_after != 0) - toInt64(s.profit_before != 0))                     AS profit_nonzero,
    sum(toInt64(s.profit_after < 0) - toInt64(s.profit_before < 0))                       AS profit_negative,
    sum(s.extra_after - s.extra_before)                                                   AS extra_value,
    sum(toInt256(s.extra_after) * s.extra_after - toInt256(s.extra_before) * s.extra_before) AS extra_value_squares,
    sum(toInt64(s.extra_after != 0) - toInt64(s.extra_before != 0))                       AS extra_value_nonzero,
    sum(toInt64(s.extra_after < 0) - toInt64(s.extra_before < 0))                         AS extra_value_negative
FROM steps AS s
GROUP BY bucket, variation_id, multi_exposed
ORDER BY bucket, variation_id, multi_exposed
)) AS c
GROUP BY bucket, variation_id, dimension, exposed_before, multi_exposed
ORDER BY bucket, variation_id, dimension, exposed_before, multi_exposed
