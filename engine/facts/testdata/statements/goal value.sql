-- one row per key: sums over visitors with goal events that count
SELECT
    of_place AS place,
    toInt64(count()) AS converted_visitors,
    toInt128(sum(n)) AS goals_reached,
    toInt128(sum(n * n)) AS goals_reached_squares,
    sum(toInt128(total_value)) AS value_sum,
    sum(toInt128(total_value) * total_value) AS value_squares,
    toInt64(countIf(total_value != 0)) AS value_nonzero,
    toInt64(countIf(total_value < 0)) AS value_negative,
    sum(toInt128(total_value) * n) AS value_times_goals,
    sum(toInt128(total_profit)) AS profit_sum,
    sum(toInt128(total_profit) * total_profit) AS profit_squares,
    toInt64(countIf(total_profit != 0)) AS profit_nonzero,
    toInt64(countIf(total_profit < 0)) AS profit_negative,
    sum(toInt128(total_extra_value)) AS extra_value_sum,
    sum(toInt128(total_extra_value) * total_extra_value) AS extra_value_squares,
    toInt64(countIf(total_extra_value != 0)) AS extra_value_nonzero,
    toInt64(countIf(total_extra_value < 0)) AS extra_value_negative
FROM (
    -- one row per visitor with goal events that count: their number and their total amounts
    SELECT
        sum(toInt64(sign)) AS n,
        toUInt32(intDiv(sum(sign * toInt64(toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))))), n)) AS of_place,
        sum(sign * value) AS total_value,
        sum(sign * profit) AS total_profit,
        sum(sign * extra_value) AS total_extra_value
    FROM facts
    WHERE section = {goals:UInt64}
        AND goal_id = {goal_id:Int64}
        AND value >= {goal_value:Int64}
        AND variation != ''
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
