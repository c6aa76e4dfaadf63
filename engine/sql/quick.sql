-- The same rows as moments.sql, in one pass without lists of events. It cannot tell the visitors apart who need the lists:
-- those with something that counts before their first view, with a view of an unknown variation, or with so many goals that
-- a sum might overflow. It names them in recount, and moments.sql counts them.
--
-- A first view is the least of (milliseconds, rank of the variation) in one number; where attributes are asked for, they are
-- those at the least of that number and the event's id.
WITH
    visitors AS (  -- one row per visitor with a view
        SELECT
            visitor_id,
            min(if(event = 'view', {{.At}} * 65536 + {{.Rank}}, 18446744073709551615))                                 AS first_view,
            {{.FirstView}}                                                                                             AS attributes,
            max(if(event = 'view', {{.Rank}}, 0))                                                                      AS highest_rank,
            min(if(event = 'view', {{.Rank}}, 65535))                                                                  AS lowest_rank,
            min(if({{.Counts}}, {{.At}}, 18446744073709551615))                                                        AS first_counted,
            max(if(time < {to:DateTime64(3, 'UTC')}, {{.At}}, 0))                                                      AS last_seen,
            countIf(event = 'view' AND time < {to:DateTime64(3, 'UTC')})                                               AS views,
            {{.Clicks}}                                                                                                AS clicks,
            {{.Submits}}                                                                                               AS submits,
            {{.Completions}}                                                                                           AS completions,
            {{.Conversions}}                                                                                           AS conversions,
            {{.Contacts}}                                                                                              AS contacts,
            countIf({{.Goals}} AND time < {to:DateTime64(3, 'UTC')})                                                   AS goals_reached,
            sumIf(value, {{.Goals}} AND time < {to:DateTime64(3, 'UTC')})                                              AS goals_value,
            sumIf(profit, {{.Goals}} AND time < {to:DateTime64(3, 'UTC')})                                             AS goals_profit,
            sumIf(extra_value, {{.Goals}} AND time < {to:DateTime64(3, 'UTC')})                                        AS goals_extra_value
        FROM events
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
        GROUP BY visitor_id
        HAVING first_view != 18446744073709551615
    ),
    counted AS (  -- one row per visitor of the report, seen in its window but first exposed before, or to be counted again
        SELECT
            visitor_id,
            fromUnixTimestamp64Milli(toInt64(bitShiftRight(first_view, 16)), 'UTC')                                    AS exposed_at,
            {variation_ids:Array(Int64)}[bitAnd(first_view, 65535)]                                                    AS variation_id,
            attributes.1                                                                                               AS dimension,
            exposed_at < {from:DateTime64(3, 'UTC')}                                                                   AS earlier,
            lowest_rank != highest_rank                                                                                AS crossover,
            highest_rank = 65535
                OR first_counted < bitShiftRight(first_view, 16)
                OR goals_reached > 900000                                                                  AS recount,
            views, clicks, submits, completions, conversions, contacts, goals_reached,
            goals_value AS value,
            goals_profit AS profit,
            goals_extra_value AS extra_value
        FROM visitors
        WHERE recount
            OR (
                attributes.2
                AND exposed_at < {to:DateTime64(3, 'UTC')}
                AND last_seen >= toUnixTimestamp64Milli({from:DateTime64(3, 'UTC')})
            )
    )
{{template "sums.sql" .}}
