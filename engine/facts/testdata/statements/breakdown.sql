-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0)) + transform(regexpExtract(custom, {dimension1_1:String}, 1), {top1:Array(String)}, {ranks1:Array(UInt32)}, toUInt32(0))) AS place,
    sum(sign) AS visitors,
    sum(sign * views) AS all_views
FROM facts
WHERE section = {visitors:UInt64}
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

-- one row per key: what the counted goal events add to sums over visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0)) + transform(regexpExtract(custom, {dimension1_1:String}, 1), {top1:Array(String)}, {ranks1:Array(UInt32)}, toUInt32(0))) AS place,
    sumIf(sign, number = 1) AS converted_visitors,
    toInt128(sum(sign)) AS goals_reached,
    toInt128(sum(sign * (2 * number - 1))) AS goals_reached_squares
FROM facts
WHERE section = {goals:UInt64}
    AND goal_id = {goal_id:Int64}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per value of an attribute, by visitors, in descending order
SELECT
    toString(device) AS dimension,
    sum(toInt64(sign)) AS visitors
FROM facts
WHERE section = {visitors:UInt64}
    AND variation != ''
    AND NOT endsWith(variation, '!')
GROUP BY dimension
HAVING sum(toInt64(sign)) > 0
ORDER BY visitors DESC, dimension
LIMIT {most:UInt32}
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per value of an attribute, by visitors, in descending order
SELECT
    toString(regexpExtract(custom, {dimension0_1:String}, 1)) AS dimension,
    sum(toInt64(sign)) AS visitors
FROM facts
WHERE section = {visitors:UInt64}
    AND variation != ''
    AND NOT endsWith(variation, '!')
GROUP BY dimension
HAVING sum(toInt64(sign)) > 0
ORDER BY visitors DESC, dimension
LIMIT {most:UInt32}
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
