WITH
    visitors AS (  -- one row per visitor with a view: the first of them, and the events that may count
        SELECT
            visitor_id,
            argMinIf(
                (time, variation_id, {{.Dimension}}, toBool({{.Filters}})),
                (time, variation_id, event_id),
                event = 'view'
            )                                                             AS first_view,
            minIf(variation_id, event = 'view') != maxIf(variation_id, event = 'view') AS crossover,
            maxIf(time, time < {to:DateTime64(3, 'UTC')})                 AS last_seen,
            countIf(event = 'view' AND time < {to:DateTime64(3, 'UTC')})  AS views,
            groupArrayIf(
                (time, toInt128(value), toInt128(profit), toInt128(extra_value)),
                event = 'goal' AND {{.Goal}} AND time < {to:DateTime64(3, 'UTC')}
            )                                                             AS goals
        FROM events
        WHERE website_id = {website_id:Int64}
            AND subject = {subject:String}
            AND subject_id = {subject_id:Int64}
            AND experiment_id = {experiment_id:Int64}
            AND event IN ('view', 'goal')
        GROUP BY visitor_id
        HAVING countIf(event = 'view') > 0
    ),
    counted AS (  -- one row per visitor of the report, or seen in its window but first exposed before: its cell and its sums
        SELECT
            first_view.1                                                 AS exposed_at,
            first_view.2                                                 AS variation_id,
            first_view.3                                                 AS dimension,
            exposed_at < {from:DateTime64(3, 'UTC')}                     AS earlier,
            crossover,
            views,
            arrayFilter(goal -> goal.1 >= exposed_at, goals)             AS reached,
            length(reached)                                              AS goals_reached,
            arraySum(goal -> goal.2, reached)                            AS value,
            arraySum(goal -> goal.3, reached)                            AS profit,
            arraySum(goal -> goal.4, reached)                            AS extra_value
        FROM visitors
        WHERE first_view.4
            AND exposed_at < {to:DateTime64(3, 'UTC')}
            AND last_seen >= {from:DateTime64(3, 'UTC')}
    )
-- one row per variation, dimension value, and standing of the visitor in the report
SELECT
    c.variation_id                                               AS variation_id,
    c.dimension                                                  AS dimension,
    c.earlier                                                    AS earlier,
    c.crossover                                                  AS crossover,
    count()                                                      AS visitors,
    countIf(c.exposed_at >= {shares_since:DateTime64(3, 'UTC')}) AS visitors_since_shares,
    countIf(
        c.exposed_at >= {recent_from:DateTime64(3, 'UTC')}
        AND c.exposed_at < {recent_to:DateTime64(3, 'UTC')}
    )                                                            AS visitors_recent,
    sum(c.views)                                                 AS views,
    countIf(c.goals_reached > 0)                                 AS converted_visitors,
    sum(c.goals_reached)                                         AS goals_reached,
    sum(c.goals_reached * c.goals_reached)                       AS goals_reached_squares,
    sum(c.value)                                                 AS value,
    sum(toInt256(c.value) * c.value)                             AS value_squares,
    countIf(c.value != 0)                                        AS value_nonzero,
    countIf(c.value < 0)                                         AS value_negative,
    sum(c.value * toInt128(c.goals_reached))                     AS value_times_goals,
    sum(c.profit)                                                AS profit,
    sum(toInt256(c.profit) * c.profit)                           AS profit_squares,
    countIf(c.profit != 0)                                       AS profit_nonzero,
    countIf(c.profit < 0)                                        AS profit_negative,
    sum(c.extra_value)                                           AS extra_value,
    sum(toInt256(c.extra_value) * c.extra_value)                 AS extra_value_squares,
    countIf(c.extra_value != 0)                                  AS extra_value_nonzero,
    countIf(c.extra_value < 0)                                   AS extra_value_negative
FROM counted AS c
GROUP BY variation_id, dimension, earlier, crossover
ORDER BY variation_id, dimension, earlier, crossover
