-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toUnixTimestamp64Milli(first_time) < {from_ms:Int64} AS exposed_before,
    toInt64(intDiv(toUnixTimestamp64Milli(multi_exposed_at) + {shift:Int64}, {width:Int64})) AS crossed,
    sum(sign) AS visitors,
    sumIf(sign, first_day >= {recent_from:Date} AND first_day < {recent_to:Date}) AS visitors_recent,
    sum(sign * views) AS all_views
FROM facts
WHERE section = {visitors:UInt64}
    AND toUnixTimestamp64Milli(first_time) + toInt64(since_ms) >= {from_ms:Int64}
GROUP BY place, exposed_before, crossed
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: the sums that its bucket adds
SELECT
    of_place AS place,
    of_crossed AS crossed,
    toInt64(intDiv(e.1 + {shift:Int64}, {width:Int64})) AS bucket,
    sum(of_sign * toInt64(e.2 = 1 AND e.3 = 1)) AS visitors,
    sum(of_sign * toInt64(e.2 = 1 AND e.3 > 0)) AS all_views
FROM (
    -- one row per event other than goals: its time, its kind, and its number among the visitor's events of this kind that count; 0: it does not count
    SELECT
        sign AS of_sign,
        arrayJoin(arrayMap((ms, number) -> (toUnixTimestamp64Milli(first_time) + ms, 1, number), arrayPushFront(arrayFilter((ms, kind) -> kind = 1, later_ms, later_kinds), 0) AS times, arrayEnumerate(times))) AS e,
        toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS of_place,
        toInt64(intDiv(toUnixTimestamp64Milli(multi_exposed_at) + {shift:Int64}, {width:Int64})) AS of_crossed
    FROM facts
    WHERE section = {visitors:UInt64}
        AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
)
WHERE e.2 <= 6
GROUP BY place, crossed, bucket
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: what the counted goal events add to sums over visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toInt64(intDiv(toUnixTimestamp64Milli(multi_exposed_at) + {shift:Int64}, {width:Int64})) AS crossed,
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
    sum(sign * ((extra_value_before + extra_value < 0) - (extra_value_before < 0))) AS extra_value_negative,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt64(1), toInt64(0)) - if(value_before > {cap:Int64}, toInt64(1), toInt64(0)))) AS capped_visitors,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt256((value_before + value)) - {cap:Int64}, toInt256(0)) - if(value_before > {cap:Int64}, toInt256(value_before) - {cap:Int64}, toInt256(0)))) AS value_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt256((value_before + value)) * (value_before + value) - toInt256({cap:Int64}) * {cap:Int64}, toInt256(0)) - if(value_before > {cap:Int64}, toInt256(value_before) * value_before - toInt256({cap:Int64}) * {cap:Int64}, toInt256(0)))) AS value_squares_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, (toInt256((value_before + value)) - {cap:Int64}) * (2 * toInt256((profit_before + profit)) - (value_before + value) + {cap:Int64}), toInt256(0)) - if(value_before > {cap:Int64}, (toInt256(value_before) - {cap:Int64}) * (2 * toInt256(profit_before) - value_before + {cap:Int64}), toInt256(0)))) AS profit_squares_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt64((profit_before + profit) != 0) - toInt64((profit_before + profit) != (value_before + value) - {cap:Int64}), toInt64(0)) - if(value_before > {cap:Int64}, toInt64(profit_before != 0) - toInt64(profit_before != value_before - {cap:Int64}), toInt64(0)))) AS profit_nonzero_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt64((profit_before + profit) < 0) - toInt64((profit_before + profit) < (value_before + value) - {cap:Int64}), toInt64(0)) - if(value_before > {cap:Int64}, toInt64(profit_before < 0) - toInt64(profit_before < value_before - {cap:Int64}), toInt64(0)))) AS profit_negative_removed
FROM facts
WHERE section = {goals:UInt64}
    AND goal_id = {goal_id:Int64}
    AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
GROUP BY place, crossed
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: what the counted goal events add to sums over visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
    toInt64(intDiv(toUnixTimestamp64Milli(multi_exposed_at) + {shift:Int64}, {width:Int64})) AS crossed,
    toInt64(intDiv(toUnixTimestamp64Milli(first_time) + toInt64(since_ms) + {shift:Int64}, {width:Int64})) AS bucket,
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
    sum(sign * ((extra_value_before + extra_value < 0) - (extra_value_before < 0))) AS extra_value_negative,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt64(1), toInt64(0)) - if(value_before > {cap:Int64}, toInt64(1), toInt64(0)))) AS capped_visitors,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt256((value_before + value)) - {cap:Int64}, toInt256(0)) - if(value_before > {cap:Int64}, toInt256(value_before) - {cap:Int64}, toInt256(0)))) AS value_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt256((value_before + value)) * (value_before + value) - toInt256({cap:Int64}) * {cap:Int64}, toInt256(0)) - if(value_before > {cap:Int64}, toInt256(value_before) * value_before - toInt256({cap:Int64}) * {cap:Int64}, toInt256(0)))) AS value_squares_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, (toInt256((value_before + value)) - {cap:Int64}) * (2 * toInt256((profit_before + profit)) - (value_before + value) + {cap:Int64}), toInt256(0)) - if(value_before > {cap:Int64}, (toInt256(value_before) - {cap:Int64}) * (2 * toInt256(profit_before) - value_before + {cap:Int64}), toInt256(0)))) AS profit_squares_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt64((profit_before + profit) != 0) - toInt64((profit_before + profit) != (value_before + value) - {cap:Int64}), toInt64(0)) - if(value_before > {cap:Int64}, toInt64(profit_before != 0) - toInt64(profit_before != value_before - {cap:Int64}), toInt64(0)))) AS profit_nonzero_removed,
    sum(sign * (if((value_before + value) > {cap:Int64}, toInt64((profit_before + profit) < 0) - toInt64((profit_before + profit) < (value_before + value) - {cap:Int64}), toInt64(0)) - if(value_before > {cap:Int64}, toInt64(profit_before < 0) - toInt64(profit_before < value_before - {cap:Int64}), toInt64(0)))) AS profit_negative_removed
FROM facts
WHERE section = {goals:UInt64}
    AND goal_id = {goal_id:Int64}
    AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}
GROUP BY place, crossed, bucket
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
