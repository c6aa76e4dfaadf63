-- website_id           1
-- subject              widget
-- subject_id           1
-- experiment_id        4
-- from                 1970-01-01 00:00:00 +0000 UTC
-- to                   2200-01-01 00:00:00 +0000 UTC
-- goal_id              2
-- shares_since         1970-01-01 00:00:00 +0000 UTC
-- recent_from          2026-04-24 00:00:00 +0000 UTC
-- recent_to            2026-05-01 00:00:00 +0000 UTC
-- variation_ids        [0 1]
-- ranks                [1 2]
-- The same rows as moments.sql, in one pass without lists of events. It cannot tell the visitors apart who need the lists:
-- those with something that counts before their first view, with a view of an unknown variation, or with so many goals that
-- a sum might overflow. It names them in recount, and moments.sql counts them.
WITH
    ranked AS (  -- one row per event: its time and its variation as numbers, and what it is
        SELECT
            visitor_id,
            event,
            event_id,
            event = 'view'                                                                      AS is_view,
            (event = 'goal' AND goal_id = {goal_id:Int64})                                                                        AS is_goal,
            (event = 'goal' AND goal_id = {goal_id:Int64} OR event IN ('click', 'submit', 'completion', 'conversion', 'contact'))                                                                       AS counts,
            true                                                                         AS in_time,
            toUInt64(toUnixTimestamp64Milli(time))                                              AS at,
            transform(variation_id, {variation_ids:Array(Int64)}, {ranks:Array(UInt16)}, 65535) AS rank,
            at * 65536 + rank                                                                   AS place,
            if(
                is_view,
                bitOr(bitShiftLeft(toUInt128(place), 64), toUInt128(event_id)),
                toUInt128('340282366920938463463374607431768211455')
            )                                                                                   AS view_order,
            ''                                                                      AS dimension,
            toBool(true)                                                                AS holds,
            value,
            profit,
            extra_value
        FROM events
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
    ),
    visitors AS (  -- one row per visitor with a view; the first is the least in time, variation and event id
        SELECT
            visitor_id,
            min(if(is_view, place, 18446744073709551615))     AS first_view,
            ''                               AS first_dimension,
            true                                   AS first_holds,
            max(if(is_view, rank, 0))                         AS highest_rank,
            min(if(is_view, rank, 65535))                     AS lowest_rank,
            min(if(counts, at, 18446744073709551615))         AS first_counted,
            18446744073709551615                                     AS last_seen,
            countIf(is_view AND in_time)                      AS views,
            countIf(event = 'click' AND in_time)                                       AS clicks,
            countIf(event = 'submit' AND in_time)                                      AS submits,
            countIf(event = 'completion' AND in_time)                                  AS completions,
            countIf(event = 'conversion' AND in_time)                                  AS conversions,
            countIf(event = 'contact' AND in_time)                                     AS contacts,
            countIf(is_goal AND in_time)                      AS goals_reached,
            sumIf(value, is_goal AND in_time)                 AS goals_value,
            sumIf(profit, is_goal AND in_time)                AS goals_profit,
            sumIf(extra_value, is_goal AND in_time)           AS goals_extra_value
        FROM ranked
        GROUP BY visitor_id
        HAVING first_view != 18446744073709551615
    ),
    counted AS (  -- one row per visitor of the report, seen in its window but first exposed before, or to be counted again
        SELECT
            visitor_id,
            fromUnixTimestamp64Milli(toInt64(bitShiftRight(first_view, 16)), 'UTC') AS exposed_at,
            {variation_ids:Array(Int64)}[bitAnd(first_view, 65535)]                 AS variation_id,
            first_dimension                                                         AS dimension,
            exposed_at < {from:DateTime64(3, 'UTC')}                                AS earlier,
            lowest_rank != highest_rank                                             AS crossover,
            highest_rank = 65535
                OR first_counted < bitShiftRight(first_view, 16)
                OR goals_reached > 900000                                           AS recount,
            views,
            clicks,
            submits,
            completions,
            conversions,
            contacts,
            goals_reached,
            goals_value                                                             AS value,
            goals_profit                                                            AS profit,
            goals_extra_value                                                       AS extra_value
        FROM visitors
        WHERE recount
            OR (
                first_holds
                AND exposed_at < {to:DateTime64(3, 'UTC')}
                AND last_seen >= toUnixTimestamp64Milli({from:DateTime64(3, 'UTC')})
            )
    )
-- one row per variation, dimension value, and standing of the visitor in the report
SELECT
    c.variation_id                                                        AS variation_id,
    c.dimension                                                           AS dimension,
    c.earlier                                                             AS earlier,
    c.crossover                                                           AS crossover,
    groupArrayIf(c.visitor_id, c.recount)                                 AS recount,
    toInt64(countIf(NOT c.recount))                                       AS visitors,
    toInt64(countIf(c.exposed_at >= {shares_since:DateTime64(3, 'UTC')})) AS visitors_since_shares,
    toInt64(countIf(
        c.exposed_at >= {recent_from:DateTime64(3, 'UTC')}
        AND c.exposed_at < {recent_to:DateTime64(3, 'UTC')}
    ))                                                                    AS visitors_recent,
    toInt64(sum(c.views))                                                 AS views,
    toInt64(sum(c.clicks))                                                AS clicks,
    toInt64(sum(c.submits))                                               AS submits,
    toInt64(sum(c.completions))                                           AS completions,
    toInt64(countIf(c.completions > 0))                                   AS completed_visitors,
    toInt64(sum(c.conversions))                                           AS conversions,
    toInt64(countIf(c.conversions > 0))                                   AS conversion_visitors,
    toInt64(sum(c.contacts))                                              AS contacts,
    toInt64(countIf(c.goals_reached > 0))                                 AS converted_visitors,
    toInt64(sum(c.goals_reached))                                         AS goals_reached,
    toInt64(sum(c.goals_reached * c.goals_reached))                       AS goals_reached_squares,
    sum(toInt128(c.value))                                                AS value,
    sum(toInt256(c.value) * c.value)                                      AS value_squares,
    toInt64(countIf(c.value != 0))                                        AS value_nonzero,
    toInt64(countIf(c.value < 0))                                         AS value_negative,
    sum(toInt128(c.value) * toInt128(c.goals_reached))                    AS value_times_goals,
    sum(toInt128(c.profit))                                               AS profit,
    sum(toInt256(c.profit) * c.profit)                                    AS profit_squares,
    toInt64(countIf(c.profit != 0))                                       AS profit_nonzero,
    toInt64(countIf(c.profit < 0))                                        AS profit_negative,
    sum(toInt128(c.extra_value))                                          AS extra_value,
    sum(toInt256(c.extra_value) * c.extra_value)                          AS extra_value_squares,
    toInt64(countIf(c.extra_value != 0))                                  AS extra_value_nonzero,
    toInt64(countIf(c.extra_value < 0))                                   AS extra_value_negative
FROM counted AS c
GROUP BY variation_id, dimension, earlier, crossover, c.recount
ORDER BY variation_id, dimension, earlier, crossover, c.recount

