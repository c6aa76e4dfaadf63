-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0)) + transform(regexpExtract(custom, {dimension1_1:String}, 1), {top1:Array(String)}, {ranks1:Array(UInt32)}, toUInt32(0))) AS place,
    sum(sign) AS visitors,
    sum(sign * views) AS all_views
FROM facts
WHERE section = {visitors:UInt64}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: what the counted goal events add to sums over visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0)) + transform(regexpExtract(custom, {dimension1_1:String}, 1), {top1:Array(String)}, {ranks1:Array(UInt32)}, toUInt32(0))) AS place,
    sumIf(sign, number = 1) AS converted_visitors,
    toInt128(sum(sign)) AS goals_reached,
    toInt128(sum(sign * (2 * number - 1))) AS goals_reached_squares,
    toInt128(sum(toInt64(sign * value))) AS value_sum,
    toInt128(sum(toInt64(sign * value) * (2 * value_before + value))) AS value_squares,
    if(value_squares = 0, 0, converted_visitors) AS value_nonzero,
    toInt64(0) AS value_negative,
    toInt128(sum(toInt64(sign * value) * number + sign * value_before)) AS value_times_goals,
    toInt128(sum(toInt64(sign * profit))) AS profit_sum,
    toInt128(sum(toInt64(sign * profit) * (2 * profit_before + profit))) AS profit_squares,
    if(profit_squares = 0, 0, converted_visitors) AS profit_nonzero,
    sum(sign * ((profit_before + profit < 0) - (profit_before < 0))) AS profit_negative
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
HAVING visitors > 0
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
HAVING visitors > 0
ORDER BY visitors DESC, dimension
LIMIT {most:UInt32}
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

