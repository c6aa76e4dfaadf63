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
        sumIf(sign * arraySum((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> if((line_category = {x_3:String}), line_revenue, 0), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit), (section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_category = {x_2:String}), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit))) AS x,
        toInt64(0) AS y,
        sum(toInt64(sign * bitAnd(marks, 1))) AS unknown
    FROM facts
    WHERE section IN ({visitors:UInt64}, {goals:UInt64})
        AND variation != ''
        AND ((section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_category = {x_2:String}), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit)))
    GROUP BY visitor_id
    HAVING n != 0
)
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: the sums that its bucket adds
SELECT
    of_place AS place,
    toInt64(intDiv(e.1 + {shift:Int64}, {width:Int64})) AS bucket,
    sum(of_sign * toInt64(e.2 = 1 AND e.3 = 1)) AS visitors,
    sum(of_sign * toInt64(e.2 = 1 AND e.3 > 0)) AS all_views
FROM (
    -- one row per event other than goals: its time, its kind, and its number among the visitor's events of this kind that count; 0: it does not count
    SELECT
        sign AS of_sign,
        arrayJoin(arrayMap((ms, number) -> (toUnixTimestamp64Milli(first_time) + ms, 1, number), arrayPushFront(arrayFilter((ms, kind) -> kind = 1, later_ms, later_kinds), 0) AS times, arrayEnumerate(times))) AS e,
        toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS of_place
    FROM facts
    WHERE section = {visitors:UInt64}
)
WHERE e.2 <= 6
GROUP BY place, bucket
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

-- one row per key: what its bucket adds to the sums of the quantities
SELECT
    of_place AS place,
    through AS bucket,
    sum(toInt128(x) - toInt128(x_before)) AS sum_x,
    sum(toInt128(x) * x - toInt128(x_before) * x_before) AS squares_x,
    sum(toInt64(x != 0) - toInt64(x_before != 0)) AS nonzero_x,
    sum(toInt64(x < 0) - toInt64(x_before < 0)) AS negative_x,
    sum(toInt128(y) - toInt128(y_before)) AS sum_y,
    sum(toInt128(y) * y - toInt128(y_before) * y_before) AS squares_y,
    sum(toInt128(x) * y - toInt128(x_before) * y_before) AS products,
    sum(toInt64(y != 0) - toInt64(y_before != 0)) AS nonzero_y,
    sum(toInt64(x != 0 AND y != 0) - toInt64(x_before != 0 AND y_before != 0)) AS nonzero_both,
    sum(unknown - unknown_before) AS unknown_values
FROM (
    -- one row per visitor and bucket with such rows: the quantities at its end and before it
    SELECT
        *,
        lagInFrame(x, 1, toInt64(0)) OVER earlier AS x_before,
        lagInFrame(y, 1, toInt64(0)) OVER earlier AS y_before,
        lagInFrame(unknown, 1, toInt64(0)) OVER earlier AS unknown_before
    FROM (
        -- one row per visitor and bucket with rows that the metric reads: its quantities at the bucket's end
        SELECT
            sum(toInt64(sign)) AS n,
            toUInt32(intDiv(sum(sign * toInt64(toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))))), n)) AS of_place,
            sumIf(sign * arraySum((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> if((line_category = {x_3:String}), line_revenue, 0), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit), (section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_category = {x_2:String}), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit))) AS x,
            toInt64(0) AS y,
            sum(toInt64(sign * bitAnd(marks, 1))) AS unknown,
            visitor_id,
            through
        FROM (
            SELECT
                *,
                arrayJoin(arrayFilter(bucket -> bucket >= row_bucket, buckets)) AS through
            FROM (
                SELECT
                    *,
                    toInt64(intDiv(toUnixTimestamp64Milli(first_time) + toInt64(since_ms) + {shift:Int64}, {width:Int64})) AS row_bucket,
                    groupUniqArray(row_bucket) OVER (PARTITION BY visitor_id) AS buckets
                FROM facts
                WHERE section IN ({visitors:UInt64}, {goals:UInt64})
                    AND variation != ''
                    AND ((section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_category = {x_2:String}), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit)))
            )
        )
        GROUP BY visitor_id, through
        HAVING n != 0
    )
    WINDOW earlier AS (PARTITION BY visitor_id ORDER BY through ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
GROUP BY place, bucket
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: what the counted goal events add to sums over visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))) AS place,
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
    sum(sign * ((extra_value_before + extra_value < 0) - (extra_value_before < 0))) AS extra_value_negative
FROM facts
WHERE section = {goals:UInt64}
    AND goal_id = {goal_id:Int64}
GROUP BY place, bucket
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
