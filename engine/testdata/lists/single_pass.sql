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
-- variation_ids        [0 1 2]
-- ranks                [1 2 3]
-- from_at              0
-- to_at                7258118400000
-- The rows of moments.sql in one pass without lists of events. Some visitors need the lists: those with a counted event
-- before the first view, with a view of an unknown variation, with first views that differ only in the event id, or with so
-- many goals that a sum could overflow. Column recount has their ids, and package visit counts their events.
WITH
    ranked AS (  -- one row per event: time and variation as numbers, and its kind
        SELECT
            visitor_id,
            event,
            event = 'view'                                                                     AS is_view,
            (event = 'goal' AND goal_id = {goal_id:Int64}) AS counts,
            true AS in_time,
            (event = 'goal' AND goal_id = {goal_id:Int64}) AND in_time AS is_reached,
            toUInt64(toUnixTimestamp64Milli(time))                                             AS at,
            transform(variation_id, {variation_ids:Array(Int64)}, {ranks:Array(UInt8)}, 63)    AS rank,
            at * 64 + rank                                                                     AS place,
            bitOr(bitAnd(toUInt64(0), 18446744073709551614), toUInt64(device IN {filter_device:Array(String)} AND country IN {filter_country:Array(String)})) AS shows,
            bitOr(bitShiftLeft(toUInt128(place), 64), toUInt128(shows))                        AS sight,
            bitOr(bitShiftLeft(toUInt128(place), 64), toUInt128(bitNot(shows)))                AS mirrored,
            value                                                                              AS amount,
            profit                                                                             AS amount_of_profit,
            extra_value                                                                        AS amount_of_extra
        FROM events
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
    ),
    counted AS (  -- one row per visitor in the report, active in the window but exposed before it, or to be recounted; the first view is the minimum by time and variation
        SELECT
            visitor_id,
            minIf(sight, is_view)                                     AS first_sight,
            toUInt64(bitShiftRight(first_sight, 64))                  AS first_view,
            toUInt64(first_sight)                                     AS shows,
            toUInt64(minIf(mirrored, is_view)) != bitNot(shows)       AS tied,
            bitShiftRight(shows, 1)                                   AS dimension_hash,
            intDiv(first_view, 64)                                    AS first_at,
            groupBitOrIf(bitShiftLeft(toUInt64(1), rank), is_view)    AS seen,
            minIf(at, counts)                                         AS first_counted,
            countIf(is_view AND in_time)                              AS views,
            countIf(is_reached)                                       AS goals_reached,
            sumIf(amount, is_reached)                                 AS value,
            sumIf(amount_of_profit, is_reached)                       AS profit,
            sumIf(amount_of_extra, is_reached)                        AS extra_value,
            bitTest(seen, 63) OR tied             AS needs_recount,
            needs_recount
                OR first_counted BETWEEN 1 AND first_at - 1
                OR goals_reached > 900000                             AS recount,
            toUInt16(
                bitAnd(first_view, 63) * 8
                + (bitAnd(seen, seen - 1) != 0) * 2
                + recount
            )                                                         AS segment
        FROM ranked
        GROUP BY visitor_id
        HAVING seen != 0
            AND (
                recount
                OR first_at < {to_at:Int64}
                AND bitTest(shows, 0)
            )
    ),
    cells AS (  -- one row per segment; example is a visitor with the value
        SELECT
            c.segment                                         AS segment,
            groupArrayIf(c.visitor_id, c.recount)              AS recount,
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
        GROUP BY segment
    )
SELECT *
FROM cells
