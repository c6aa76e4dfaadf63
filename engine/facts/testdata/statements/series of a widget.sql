-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toUnixTimestamp64Milli(first_time) > {mature_ms:Int64} AS immature,
    sum(sign) AS visitors,
    sumIf(sign, first_day >= {recent_from:Date} AND first_day < {recent_to:Date}) AS visitors_recent,
    sum(sign * views) AS all_views,
    sum(sign * clicks) AS all_clicks,
    sum(sign * submits) AS all_submits,
    sum(sign * arrayCount((ms, kind) -> kind = 4 AND ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}, later_ms, later_kinds)) AS all_completions,
    sum(sign * arrayCount((ms, kind) -> kind = 5 AND ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}, later_ms, later_kinds)) AS all_conversions,
    sum(sign * contacts) AS all_contacts,
    sum(sign * (arrayCount((ms, kind) -> kind = 4 AND ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}, later_ms, later_kinds) > 0)) AS completed_visitors,
    sum(sign * (arrayCount((ms, kind) -> kind = 5 AND ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}, later_ms, later_kinds) > 0)) AS conversion_visitors
FROM facts
WHERE section = {visitors:UInt64}
GROUP BY place, immature
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: the sums that its bucket adds
SELECT
    of_place AS place,
    toInt64(intDiv(e.1 + {shift:Int64}, {width:Int64})) AS bucket,
    sum(of_sign * toInt64(e.2 = 1 AND e.3 = 1)) AS visitors,
    sum(of_sign * toInt64(e.2 = 1 AND e.3 > 0)) AS all_views,
    sum(of_sign * toInt64(e.2 = 2 AND e.3 > 0)) AS all_clicks,
    sum(of_sign * toInt64(e.2 = 3 AND e.3 > 0)) AS all_submits,
    sum(of_sign * toInt64(e.2 = 4 AND e.3 > 0)) AS all_completions,
    sum(of_sign * toInt64(e.2 = 5 AND e.3 > 0)) AS all_conversions,
    sum(of_sign * toInt64(e.2 = 6 AND e.3 > 0)) AS all_contacts,
    sum(of_sign * toInt64(e.2 = 4 AND e.3 = 1)) AS completed_visitors,
    sum(of_sign * toInt64(e.2 = 5 AND e.3 = 1)) AS conversion_visitors
FROM (
    -- one row per event other than goals: its time, its kind, and its number among the visitor's events of this kind that count; 0: it does not count
    SELECT
        sign AS of_sign,
        arrayJoin(arrayMap((ms, kind, counts, number) -> (toUnixTimestamp64Milli(first_time) + greatest(toInt64(ms), {maturity_ms:Int64} - 1), kind, counts * number), arrayPushFront(later_ms, 0) AS times, arrayPushFront(later_kinds, 1) AS kinds, arrayMap((ms, kind) -> toUInt8(kind NOT IN (4, 5) OR ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}), times, kinds) AS all_count, arrayEnumerateUniq(kinds, all_count))) AS e,
        toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS of_place
    FROM facts
    WHERE section = {visitors:UInt64}
        AND toUnixTimestamp64Milli(first_time) <= {mature_ms:Int64}
)
WHERE e.2 <= 6
GROUP BY place, bucket
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

-- one row per key: what the counted goal events add to sums over visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toInt64(intDiv(toUnixTimestamp64Milli(first_time) + {maturity_ms:Int64} - 1 + {shift:Int64}, {width:Int64})) AS bucket,
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
GROUP BY place, bucket
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
