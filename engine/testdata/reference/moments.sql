WITH
    {{template "visitors.sql" .}}
-- one row per variation, dimension value and segment: sums over its visitors
SELECT
    c.variation_id                                                                         AS variation_id,
    c.dimension                                                                            AS dimension,
    toUInt8(c.exposed_before)                                                              AS exposed_before,
    toUInt8(c.multi_exposed)                                                               AS multi_exposed,
    toInt64(count())                                                                       AS visitors,
    toUInt8(arrayCount(change -> c.first_at >= change, {share_changes:Array(Int64)}))      AS period,
    toInt64(countIf(c.first_at >= {recent_from:Int64} AND c.first_at < {recent_to:Int64})) AS visitors_recent,
    toInt64(sum(c.views))                                                                  AS views,
    toInt64(countIf(c.goals_reached > 0))                                                  AS converted_visitors,
    toInt64(sum(c.goals_reached))                                                          AS goals_reached,
    toInt64(sum(c.goals_reached * c.goals_reached))                                        AS goals_reached_squares,
    sum(toInt128(c.value))                                                                 AS value,
    sum(toInt256(c.value) * c.value)                                                       AS value_squares,
    toInt64(countIf(c.value != 0))                                                         AS value_nonzero,
    toInt64(countIf(c.value < 0))                                                          AS value_negative,
    sum(toInt128(c.value) * toInt128(c.goals_reached))                                     AS value_times_goals,
    sum(toInt128(c.profit))                                                                AS profit,
    sum(toInt256(c.profit) * c.profit)                                                     AS profit_squares,
    toInt64(countIf(c.profit != 0))                                                        AS profit_nonzero,
    toInt64(countIf(c.profit < 0))                                                         AS profit_negative,
    sum(toInt128(c.extra_value))                                                           AS extra_value,
    sum(toInt256(c.extra_value) * c.extra_value)                                           AS extra_value_squares,
    toInt64(countIf(c.extra_value != 0))                                                   AS extra_value_nonzero,
    toInt64(countIf(c.extra_value < 0))                                                    AS extra_value_negative
{{- if .Widget}},
    toInt64(sum(c.clicks))                                                                 AS clicks,
    toInt64(sum(c.submits))                                                                AS submits,
    toInt64(sum(c.completions))                                                            AS completions,
    toInt64(countIf(c.completions > 0))                                                    AS completed_visitors,
    toInt64(sum(c.conversions))                                                            AS conversions,
    toInt64(countIf(c.conversions > 0))                                                    AS conversion_visitors,
    toInt64(sum(c.contacts))                                                               AS contacts
{{- end}}
{{- if .Cap}},
    sum({{template "capped" pair "c.value" "c.profit"}}) AS capped_visitors,
    sum({{template "value_removed" pair "c.value" "c.profit"}}) AS value_removed,
    sum({{template "value_squares_removed" pair "c.value" "c.profit"}}) AS value_squares_removed,
    sum({{template "profit_squares_removed" pair "c.value" "c.profit"}}) AS profit_squares_removed,
    sum({{template "profit_nonzero_removed" pair "c.value" "c.profit"}}) AS profit_nonzero_removed,
    sum({{template "profit_negative_removed" pair "c.value" "c.profit"}}) AS profit_negative_removed
{{- end}}
FROM counted AS c
GROUP BY variation_id, dimension, exposed_before, multi_exposed, period
ORDER BY variation_id, dimension, exposed_before, multi_exposed, period
