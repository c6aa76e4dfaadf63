-- one row per key: sums over its visitors
SELECT
    toUInt32(transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0)) + transform(device, {top0:Array(String)}, {ranks0:Array(UInt32)}, toUInt32(0))) AS place,
    toInt64(first_day) AS first_day_number,
    sum(sign) AS visitors,
    sum(sign * views) AS all_views
FROM facts
WHERE section = {visitors:UInt64}
GROUP BY place, first_day_number
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
