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
        toUInt32(intDiv(sum(sign * toInt64(toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0))))), n)) AS of_place,
        sumIf(sign * arraySum((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> if((line_category = {x_3:String}), line_revenue, 0), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit), (section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_category = {x_2:String}), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit))) AS x,
        sum(toInt64(sign) * (section = {goals:UInt64} AND goal_id IN {y_1:Array(Int64)} AND since_ms < {y_2:UInt64})) AS y,
        sum(toInt64(sign * bitAnd(marks, 1))) AS unknown
    FROM facts
    WHERE section IN ({visitors:UInt64}, {goals:UInt64})
        AND variation != ''
        AND ((section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_category = {x_2:String}), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit)) OR (section = {goals:UInt64} AND goal_id IN {y_1:Array(Int64)} AND since_ms < {y_2:UInt64}))
    GROUP BY visitor_id
    HAVING n != 0
)
GROUP BY place
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1

-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0))) AS place,
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
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0))) AS place,
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
