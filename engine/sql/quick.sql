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
            ({{.Goals}})                                                                        AS is_goal,
            ({{.Counts}})                                                                       AS counts,
            {{.InTime}}                                                                         AS in_time,
            toUInt64(toUnixTimestamp64Milli(time))                                              AS at,
            transform(variation_id, {variation_ids:Array(Int64)}, {ranks:Array(UInt16)}, 65535) AS rank,
            at * 65536 + rank                                                                   AS place,
            if(
                is_view,
                bitOr(bitShiftLeft(toUInt128(place), 64), toUInt128(event_id)),
                toUInt128('340282366920938463463374607431768211455')
            )                                                                                   AS view_order,
            {{.Dimension}}                                                                      AS dimension,
            toBool({{.Filters}})                                                                AS holds,
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
            {{.FirstDimension}}                               AS first_dimension,
            {{.FirstHolds}}                                   AS first_holds,
            max(if(is_view, rank, 0))                         AS highest_rank,
            min(if(is_view, rank, 65535))                     AS lowest_rank,
            min(if(counts, at, 18446744073709551615))         AS first_counted,
            {{.LastSeen}}                                     AS last_seen,
            countIf(is_view AND in_time)                      AS views,
            {{.Clicks}}                                       AS clicks,
            {{.Submits}}                                      AS submits,
            {{.Completions}}                                  AS completions,
            {{.Conversions}}                                  AS conversions,
            {{.Contacts}}                                     AS contacts,
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
{{template "sums.sql" .}}
