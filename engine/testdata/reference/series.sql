WITH
    {{template "visitors.sql" .}},
    steps AS (  -- one row per visitor in the report and bucket with a counted event
        SELECT
            variation_id,
            dimension,
            multi_exposed,
            first_at,
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
    toUInt8(arrayCount(change -> s.first_at >= change, {share_changes:Array(Int64)}))     AS period,
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
{{- if .Widget}},
    toInt64(sum(arrayCount(e -> e.2 = 'click', s.within)))                                AS clicks,
    toInt64(sum(arrayCount(e -> e.2 = 'submit', s.within)))                               AS submits,
    toInt64(sum(arrayCount(e -> e.2 = 'completion', s.within)))                           AS completions,
    toInt64(countIf(NOT s.completed_before AND arrayExists(e -> e.2 = 'completion', s.within))) AS completed_visitors,
    toInt64(sum(arrayCount(e -> e.2 = 'conversion', s.within)))                           AS conversions,
    toInt64(countIf(NOT s.conversion_before AND arrayExists(e -> e.2 = 'conversion', s.within))) AS conversion_visitors,
    toInt64(sum(arrayCount(e -> e.2 = 'contact', s.within)))                              AS contacts
{{- end}}
{{- if .Cap}},
    sum({{template "capped" pair "s.value_after" "s.profit_after"}} - {{template "capped" pair "s.value_before" "s.profit_before"}}) AS capped_visitors,
    sum({{template "value_removed" pair "s.value_after" "s.profit_after"}} - {{template "value_removed" pair "s.value_before" "s.profit_before"}}) AS value_removed,
    sum({{template "value_squares_removed" pair "s.value_after" "s.profit_after"}} - {{template "value_squares_removed" pair "s.value_before" "s.profit_before"}}) AS value_squares_removed,
    sum({{template "profit_squares_removed" pair "s.value_after" "s.profit_after"}} - {{template "profit_squares_removed" pair "s.value_before" "s.profit_before"}}) AS profit_squares_removed,
    sum({{template "profit_nonzero_removed" pair "s.value_after" "s.profit_after"}} - {{template "profit_nonzero_removed" pair "s.value_before" "s.profit_before"}}) AS profit_nonzero_removed,
    sum({{template "profit_negative_removed" pair "s.value_after" "s.profit_after"}} - {{template "profit_negative_removed" pair "s.value_before" "s.profit_before"}}) AS profit_negative_removed
{{- end}}
FROM steps AS s
GROUP BY bucket, variation_id, multi_exposed, period
ORDER BY bucket, variation_id, multi_exposed, period
