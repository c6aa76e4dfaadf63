-- one row per value, in the order of its first appearance
SELECT
    toString(regexpExtract(properties, {appearing_1:String}, 1)) AS appeared,
    min(toUnixTimestamp64Milli(first_time) + toInt64(since_ms)) AS first_ms
FROM facts
WHERE section = {goals:UInt64}
    AND toUnixTimestamp64Milli(first_time) + toInt64(since_ms) < {before_ms:Int64}
GROUP BY appeared
HAVING sum(toInt64(sign)) > 0
ORDER BY first_ms, appeared
LIMIT {most:UInt32}
SETTINGS compile_expressions = 0, compile_aggregate_expressions = 0, compile_sort_description = 0, optimize_use_projections = 0, use_skip_indexes = 0, enable_multiple_prewhere_read_steps = 0, max_threads = 1
