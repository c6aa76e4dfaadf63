-- one row per key: sums of the quantities of its visitors
SELECT
    of_place AS place,
    sum(toInt128(x)) AS sum_x,
    sum(toInt128(x) * x) AS squares_x,
    sum(toInt64(x != 0)) AS nonzero_x,
    sum(toInt64(x < 0)) AS negative_x,
    sum(toInt128(y)) AS sum_y,
    sum(toInt128(y) * y) AS squares_y,
    sum(toInt128(x) * y) AS products,
    sum(toInt64(y != 0)) AS nonzero_y,
    sum(toInt64(x != 0 AND y != 0)) AS nonzero_both,
    sum(unknown) AS unknown_values
FROM (
    -- one row per visitor with rows that the metric reads: its quantities
    SELECT
        sum(toInt64(sign)) AS n,
        toUInt32(intDiv(sum(sign * toInt64(toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))))), n)) AS of_place,
        toInt64(windowFunnel(9007199254740992, 'strict_increase')(toUInt64(8 * since_ms + multiIf((section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)}), 7, (section = {goals:UInt64} AND goal_id IN {x_2:Array(Int64)}), 6, 0)), (section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)}), (section = {goals:UInt64} AND goal_id IN {x_2:Array(Int64)})) = 2) AS x,
        toInt64(0) AS y,
        toInt64(0) AS unknown
    FROM facts FINAL
    WHERE section IN ({visitors:UInt64}, {goals:UInt64})
        AND variation != ''
        AND (((section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)}) OR (section = {goals:UInt64} AND goal_id IN {x_2:Array(Int64)})))
        AND visitor_id IN (SELECT visitor_id FROM facts WHERE (section = {goals:UInt64} AND goal_id IN {x_2:Array(Int64)}))
    GROUP BY visitor_id
    HAVING n != 0
)
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: visitors first exposed in the recent days
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    sum(toInt64(sign)) AS visitors_recent
FROM facts
WHERE section = {visitors:UInt64}
    AND first_day >= {recent_from:Date}
    AND first_day < {recent_to:Date}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
