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
