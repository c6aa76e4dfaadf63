-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    sum(sign) AS visitors,
    sumIf(sign, first_day >= {recent_from:Date} AND first_day < {recent_to:Date}) AS visitors_recent,
    sum(sign * views) AS all_views
FROM facts
WHERE section = {visitors:UInt64}
    AND device IN {filter_device:Array(String)}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: what the counted goal events add to sums over visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(goal_id, {place_goals:Array(Int64)}, {goal_places:Array(UInt32)}, toUInt32(0))) AS place,
    sumIf(sign, number = 1) AS converted_visitors,
    toInt128(sum(sign)) AS goals_reached,
    toInt128(sum(sign * (2 * number - 1))) AS goals_reached_squares
FROM facts
WHERE section = {goals:UInt64}
    AND goal_id IN {goal_ids:Array(Int64)}
    AND device IN {filter_device:Array(String)}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
