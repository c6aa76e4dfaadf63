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
