-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toUnixTimestamp64Milli(first_time) > {mature_ms:Int64} AS immature,
    sum(sign) AS visitors,
    sumIf(sign, first_day >= {recent_from:Date} AND first_day < {recent_to:Date}) AS visitors_recent,
    sum(sign * views) AS all_views
FROM facts
WHERE section = {visitors:UInt64}
    AND toUnixTimestamp64Milli(first_time) > {mature_ms:Int64}
GROUP BY place, immature
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
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    sumIf(sign, number = 1) AS converted_visitors,
    toInt128(sum(sign)) AS goals_reached,
    toInt128(sum(sign * (2 * number - 1))) AS goals_reached_squares,
    toInt128(sum(toInt128(sign * value))) AS value_sum,
    toInt128(sum(toInt128(sign * value) * (2 * value_before + value))) AS value_squares,
    sum(sign * ((value_before + value != 0) - (value_before != 0))) AS value_nonzero,
    sum(sign * ((value_before + value < 0) - (value_before < 0))) AS value_negative,
    toInt128(sum(toInt128(sign * value) * number + sign * value_before)) AS value_times_goals,
    toInt128(sum(toInt128(sign * profit))) AS profit_sum,
    toInt128(sum(toInt128(sign * profit) * (2 * profit_before + profit))) AS profit_squares,
    sum(sign * ((profit_before + profit != 0) - (profit_before != 0))) AS profit_nonzero,
    sum(sign * ((profit_before + profit < 0) - (profit_before < 0))) AS profit_negative,
    toInt128(sum(toInt128(sign * extra_value))) AS extra_value_sum,
    toInt128(sum(toInt128(sign * extra_value) * (2 * extra_value_before + extra_value))) AS extra_value_squares,
    sum(sign * ((extra_value_before + extra_value != 0) - (extra_value_before != 0))) AS extra_value_nonzero,
    sum(sign * ((extra_value_before + extra_value < 0) - (extra_value_before < 0))) AS extra_value_negative
FROM facts
WHERE section = {goals:UInt64}
    AND goal_id = {goal_id:Int64}
    AND toUnixTimestamp64Milli(first_time) <= {mature_ms:Int64}
    AND since_ms < {age_to_ms:UInt64}
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
