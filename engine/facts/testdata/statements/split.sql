-- one row per key: sums of the quantities of its visitors
SELECT
    of_place AS place,
    toString(split_value) AS split,
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
        sumIf(sign * arraySum((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> if((line_product = split_value), line_revenue, 0), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit), (section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_product = split_value), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit))) AS x,
        toInt64(0) AS y,
        sum(toInt64(sign * bitAnd(marks, 1))) AS unknown,
        split_value
    FROM (
        SELECT
            *,
            arrayJoin(arrayDistinct(item_product)) AS split_value
        FROM facts
        WHERE section IN ({visitors:UInt64}, {goals:UInt64})
            AND variation != ''
    )
    WHERE ((section = {goals:UInt64} AND goal_id IN {x_1:Array(Int64)} AND arrayExists((line_product, line_variant, line_category, line_brand, line_quantity, line_revenue, line_profit) -> (line_product = split_value), item_product, item_variant, item_category, item_brand, item_quantity, item_revenue, item_profit)))
    GROUP BY visitor_id, split_value
    HAVING n != 0
)
GROUP BY place, split
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
